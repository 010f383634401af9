"""A loop of your own: two models, each learns from both, with an advantage rule of your own."""

from pathlib import Path

import torch

import hacrl


def rule(joint: hacrl.JointSet) -> hacrl.Judgement:
    """Each response is compared with the mean of all; peers' responses count half."""
    rewards_JPG = joint.rewards_JPG.nan_to_num(0.0)
    centred_JPG = rewards_JPG - rewards_JPG.mean(dim=(0, 2), keepdim=True)
    n = len(joint.agents)
    share_KJ = torch.full((n, n), 0.5, dtype=torch.float64).fill_diagonal_(1.0)
    return hacrl.Judgement(share_KJ[:, :, None, None] * centred_JPG)


def main() -> None:
    recipe = hacrl.load_recipe(hacrl.find_recipe("demo"))
    fleet = hacrl.LocalFleet.from_recipe(recipe)
    problems = hacrl.load_prompts(recipe.tasks)
    stream = hacrl.PromptStream(problems, 16, seed=0, weights={"arithmetic": 1.0})
    capability = hacrl.CapabilityTracker(fleet.agents, 5, "mean_reward", 10.0)
    sharing = {name: recipe.sources(name) for name in fleet.learners}
    with hacrl.make_pool(recipe.tasks, recipe.verification) as verifiers:
        for step in range(10):
            batch = stream.batch(step)
            rollouts = fleet.sample(batch, recipe.group_size, occasion=f"step {step}")
            pool = hacrl.verify_rollouts(step, batch, recipe.group_size, rollouts, verifiers)
            capability.observe(pool.rewards())
            judgement = rule(hacrl.joint_set(pool, capability.ratios(), sharing))
            fleet.learn(pool, hacrl.by_learner(judgement, pool.agents, sharing))
            print(step, dict(zip(fleet.agents, capability.estimates(), strict=True)))
    fleet.save(Path("runs/own-loop"))


if __name__ == "__main__":
    main()
