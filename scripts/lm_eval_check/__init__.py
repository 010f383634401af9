"""An exported agent in lm-eval, unchanged, and its answers there against ours.

Runs in an environment that has lm-eval beside this package; `make lm-eval-check` makes one. Trains
the demo's agents for one step, or takes a model folder, puts the same GSM8K-style file to it by
lm-eval's own `generate_until` task with GSM8K's filter and by `hacrl eval`, and compares problem
by problem. Exits with 1 if a response differs, or a verdict for another reason than these:

- lm-eval ends a response at its stop texts, `hacrl eval` at the model's end tokens alone. Ours are
  cut at the same texts before they are compared.
- lm-eval's filter takes the first `#### number`, ours the last box or marker, so that a response
  that corrects itself is read differently. (GSM8K's filter also wants exactly one space after the
  marker. The demo's agents write none, so here it may be missing.)
- lm-eval compares texts, ours mathematical values: `3.0` is `3`.
"""
