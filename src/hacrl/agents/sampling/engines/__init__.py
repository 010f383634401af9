"""Inference engines that draw for a policy, behind one protocol."""
