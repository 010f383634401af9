"""Two models learn from each other under a reward of your own, without the command line.

    python examples/own_reward.py

Bundled tiny models of two families learn to add with short workings: the reward is 1 for the right
result, less a little for every character. Prints a line a step and draws the learning curves.
"""

import hacrl

RECIPE = {
    "name": "own-reward",
    "steps": 10,
    "prompts_per_step": 16,
    "threads": 1,
    "agents": {
        "ada": {"model": "bundled:demo/assets/qwen3-char"},
        "bob": {"model": "bundled:demo/assets/llama-bpe"},
    },
    "tasks": {
        "sums": {
            "source": {"type": "jsonl", "path": "bundled:demo/assets/train.jsonl"},
            "verifier": {"type": "python", "function": "own_reward:score", "threshold": 0.5},
        }
    },
    "sampling": {"group_size": 8, "max_new_tokens": 64},
    "clip": {"own_low": 0.1, "own_high": 0.1},
    "optimizer": {"learning_rate": 1e-4},
}


def score(prompt: hacrl.Prompt, response: str) -> float:
    """Between 0.5 and 1 for the right result, the more the shorter the response; else 0."""
    right = response.rpartition("####")[2].strip() == prompt.gold
    return 1.0 - 0.5 * min(len(response), 100) / 100 if right else 0.0


class Printer(hacrl.Silent):
    """Is told how the run goes."""

    def step(self, metrics, seconds_left):
        print(metrics[0]["step"], {row["agent"]: round(row["reward"], 3) for row in metrics})


if __name__ == "__main__":
    hacrl.quieten_libraries()
    run = hacrl.train(hacrl.recipe_from_dict(RECIPE), "runs", Printer(), overwrite=True)
    metrics = run.metrics().to_pandas()
    axes = metrics.pivot(index="step", columns="agent", values="reward").plot(ylabel="reward")
    axes.figure.savefig("own-reward.png")
    print("trained models in", run.path / "agents", "and curves in own-reward.png")
