"""Synthetic learners by mostlyai-engine, with its guarantee or without: runs in an environment with `mostlyai-engine`.

`python mostlyai_tabular.py generate TRAIN OUT SEED EPSILON DELTA MINUTES` (epsilon 0: no guarantee), and
`python mostlyai_tabular.py check`, which prints what one learner can move, as JSON.

A learner is a row of the context table and their rows are the sequence; action and outcome are categorical.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pandas as pd
import torch
from mostlyai import engine
from mostlyai.engine import _common as common
from mostlyai.engine._encoding_types.tabular import categorical
from mostlyai.engine._tabular import training
from mostlyai.engine.domain import DifferentialPrivacyConfig
from mostlyai.engine.random_state import set_random_state

# Share of epsilon for finding categories and lengths.
VALUE_SHARE = 0.25
ENCODINGS = {"action": "TABULAR_CATEGORICAL", "outcome": "TABULAR_CATEGORICAL"}


def prepare(
    log: pd.DataFrame,
    folder: str,
    privacy: DifferentialPrivacyConfig | None,
    trn_val_split: float | Callable[[pd.Series], Any] = 0.8,
) -> None:
    """Everything before training: validation learners set aside, categories and lengths found."""
    learners = pd.DataFrame({"learner": log["learner"].unique()})
    engine.split(
        tgt_data=log,
        ctx_data=learners,
        tgt_context_key="learner",
        ctx_primary_key="learner",
        tgt_encoding_types=ENCODINGS,
        trn_val_split=trn_val_split,
        workspace_dir=folder,
    )
    engine.analyze(differential_privacy=privacy, workspace_dir=folder)
    engine.encode(workspace_dir=folder)


def generate(train: str, out: str, seed: int, epsilon: float, delta: float, minutes: float) -> None:
    """Fit on one file and write the other, with as many learners."""
    torch.set_num_threads(1)
    set_random_state(seed)
    log = pd.read_csv(train, dtype=str)
    privacy = None
    if epsilon:
        # Of the usual 1 too little is left for the lengths: three hundred learners come back with a row each.
        privacy = DifferentialPrivacyConfig(
            max_epsilon=epsilon, delta=delta, value_protection_epsilon=VALUE_SHARE * epsilon
        )
    # Training stops by the clock: here by that of the process, since others use the machine.
    training.time = SimpleNamespace(time=time.process_time)
    with tempfile.TemporaryDirectory() as folder:
        prepare(log, folder, privacy)
        engine.train(max_training_time=minutes, differential_privacy=privacy, workspace_dir=folder)
        engine.generate(sample_size=log["learner"].nunique(), workspace_dir=folder)
        drawn = pd.concat(
            [pd.read_parquet(path) for path in sorted(Path(folder, "SyntheticData").glob("*.parquet"))]
        )
        messages = pd.read_csv(next(Path(folder).rglob("progress-messages.csv")))
    # Rare actions come back as one reserved name, and a learner may come back with no rows at all.
    drawn = drawn.dropna(subset=["action", "outcome"])
    drawn[["learner", "action", "outcome"]].to_csv(out, index=False)
    last = messages.iloc[-1]
    kept = messages[messages["is_checkpoint"] == 1].iloc[-1]
    print(json.dumps({"epochs": float(last["epoch"]), "epsilon_spent": float(kept.get("dp_eps") or 0.0)}))


# The learner of the check: so many rows, of an action that no other learner has.
N_OWN_ROWS, OWN_ACTION = 300, "hers alone"
N_ANALYSES = 20


def classroom(*, with_her: bool) -> pd.DataFrame:
    """Forty learners with four rows each, and one with many."""
    rows = [(f"learner {i}", f"action {(i + j) % 5}", str(j % 2)) for i in range(40) for j in range(4)]
    rows += [("she", OWN_ACTION, "1")] * (N_OWN_ROWS if with_her else 0)
    return pd.DataFrame(rows, columns=["learner", "action", "outcome"])


def value_protection() -> dict[str, Any]:
    """What one learner moves of the counts of categories, the noise they get, and whether her own action is kept."""
    counts: list[dict[str, int]] = []
    epsilons: list[float] = []
    original = categorical.dp_non_rare

    def spy(value_counts: dict[str, int], epsilon: float, threshold: int = 5) -> Any:
        counts.append(dict(value_counts))
        epsilons.append(epsilon)
        return original(value_counts, epsilon, threshold)

    n_kept = 0
    with mock.patch.object(categorical, "dp_non_rare", spy):
        for number in range(N_ANALYSES):
            with tempfile.TemporaryDirectory() as folder:
                set_random_state(number)
                prepare(classroom(with_her=number > 0), folder, DifferentialPrivacyConfig())
                stats = Path(folder, "ModelStore", "tgt-stats", "stats.json").read_text(encoding="utf-8")
                n_kept += OWN_ACTION in json.loads(stats)["columns"]["action"]["codes"]
    # Two columns each time; the first analysis is that without her.
    without, with_her = counts[0], counts[2]
    moved = sum(abs(with_her.get(name, 0) - without.get(name, 0)) for name in {*without, *with_her})
    return {
        "counts_moved": moved,
        "laplace_scale": 1 / epsilons[0],
        "own_action_kept": n_kept / (N_ANALYSES - 1),
    }


def train_for_an_epoch(*, set_her_aside: bool) -> None:
    """Train on the class with her, among those who train or among the five who are set aside for validation."""
    # So many epsilons for categories and lengths that forty learners are enough to find them.
    privacy = DifferentialPrivacyConfig(value_protection_epsilon=1000.0)
    log = classroom(with_her=True)

    def split(keys: pd.Series) -> tuple[pd.Series, pd.Series]:
        aside = keys.isin(["she" if set_her_aside else "learner 4", *(f"learner {i}" for i in range(4))])
        return keys[~aside], keys[aside]

    with tempfile.TemporaryDirectory() as folder:
        set_random_state(1)
        prepare(log, folder, privacy, split)
        training.train(
            max_epochs=1,
            batch_size=len(log),
            enable_flexible_generation=False,
            differential_privacy=privacy,
            workspace_dir=folder,
        )


def others(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """All learners of a batch but the one with most rows."""
    # The reverse index of a padded row is 0.
    index = next(value for name, value in batch.items() if name.startswith(common.RIDX_SUB_COLUMN_PREFIX))
    lengths = index.squeeze(-1).ne(0).sum(1)
    everybody = torch.arange(len(lengths))
    return everybody[everybody != lengths.argmax()]


def gradient() -> dict[str, float]:
    """How far the sum of clipped gradients of one batch moves when one learner is left out, and the clipping norm.

    The loss of each learner is divided by the rows of the whole batch, so leaving one out changes all the others'.
    """
    seen: dict[str, Any] = {}
    original: Callable[[Any, Any], Any] = training._calculate_sample_losses

    def spy(model: Any, batch: dict[str, torch.Tensor]) -> Any:
        if not seen and hasattr(model, "_module"):
            seen.update(model=model, batch=batch)
        return original(model, batch)

    with mock.patch.object(training, "_calculate_sample_losses", spy):
        train_for_an_epoch(set_her_aside=False)
    model, batch = seen["model"], seen["batch"]
    # What is drawn anew for each batch must not tell the two apart.
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    norm = DifferentialPrivacyConfig().max_grad_norm

    def clipped_sum(chosen: torch.Tensor) -> torch.Tensor:
        model.zero_grad(set_to_none=True)
        original(model, {name: value[chosen] for name, value in batch.items()}).mean().backward()
        parts = [
            p.grad_sample.reshape(len(chosen), -1) for p in model.parameters() if p.grad_sample is not None
        ]
        whole = torch.cat(parts, dim=1)
        factor = (norm / whole.norm(dim=1)).clamp(max=1.0)
        total: torch.Tensor = (whole * factor[:, None]).sum(0)
        return total

    rest = others(batch)
    return {
        "gradient_moved": float((clipped_sum(torch.arange(len(rest) + 1)) - clipped_sum(rest)).norm()),
        "clipping_norm": norm,
        "batch": len(rest) + 1,
    }


def validation() -> dict[str, Any]:
    """What one learner moves of the validation loss, and what the accountant charges for that loss."""
    engines: list[Any] = []
    losses: list[float] = []
    charged: list[float] = []
    original: Callable[..., float] = training._calculate_val_loss

    class Engine(training.PrivacyEngine):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            engines.append(self)

    def spy(model: Any, val_dataloader: Any) -> float:
        before = engines[-1].get_epsilon(1e-5)
        batches = list(val_dataloader)
        loss = original(model=model, val_dataloader=batches)
        hers = max(range(len(batches)), key=lambda i: max(value.shape[1] for value in batches[i].values()))
        rest = others(batches[hers])
        batches[hers] = {name: value[rest] for name, value in batches[hers].items()}
        losses.extend((loss, original(model=model, val_dataloader=batches)))
        charged.append(engines[-1].get_epsilon(1e-5) - before)
        return loss

    with (
        mock.patch.object(training, "PrivacyEngine", Engine),
        mock.patch.object(training, "_calculate_val_loss", spy),
    ):
        train_for_an_epoch(set_her_aside=True)
    return {
        "validation_loss": losses[0],
        "validation_loss_moved": abs(losses[0] - losses[1]),
        "validation_epsilon": charged[0],
        "secure_mode": engines[0].secure_mode,
    }


if __name__ == "__main__":
    if sys.argv[1] == "check":
        print(json.dumps(value_protection() | gradient() | validation()))
    if sys.argv[1] == "generate":
        generate(sys.argv[2], sys.argv[3], int(sys.argv[4]), *map(float, sys.argv[5:8]))
