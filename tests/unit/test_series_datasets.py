"""Generated curves have the published shape; the experiment writes what it says."""

from __future__ import annotations

import polars as pl
import pytest

from shoal.core.errors import UsageError
from shoal.datasets.series import news_feedback, random_walks, sales_curves
from shoal.experiments import kp


def test_generators_have_the_published_shape_and_follow_their_seed():
    sales, news, walks = sales_curves(), news_feedback(), random_walks()
    assert sales.shape == (811, 53)
    assert news.shape == (7687, 145)
    assert walks.shape == (6553, 10)
    assert sales["Product_Code"].is_unique().all()
    assert sales.select("^W.*$").min_horizontal().min() == 0
    assert news.select("^TS.*$").min_horizontal().min() == -1
    curves = news.select("^TS.*$").to_numpy()
    assert (curves[:, 1:] >= curves[:, :-1]).all()  # cumulative
    still = (curves == curves[:, :1]).all(axis=1).mean()
    assert 0.05 < still < 0.4
    assert (walks.min(), walks.max()) == (0, 1)
    assert sales_curves(seed=3).equals(sales_curves(seed=3))
    assert not sales_curves(seed=3).equals(sales)
    with pytest.raises(UsageError, match="at least one row"):
        sales_curves(0)


@pytest.mark.slow
def test_the_experiment_writes_tables_and_pictures(tmp_path, monkeypatch):
    # small sets: what is asked is that every method, set and l comes to its table and picture
    monkeypatch.setattr(kp, "news_feedback", lambda rows=200, seed=0: news_feedback(min(rows, 200), 24, seed=seed))
    monkeypatch.setattr(kp, "sales_curves", lambda rows=200, weeks=24: sales_curves(rows, weeks))
    monkeypatch.setattr(kp, "ROUNDS", 1)  # nobody reads the seconds
    table = kp.run(tmp_path)
    assert set(table["source"]) == {"generated"}
    assert set(table["data"]) == {"sales", "palestine", "microsoft shape"}
    assert set(table["method"]) == {"naive", "kapra", "kapra as published", "banded"}
    assert pl.read_csv(tmp_path / "kp_diversity.csv")["l"].to_list() == [2, 3, 4]
    names = {path.stem for path in tmp_path.glob("*.svg")}
    assert {"value-p", "pattern-k", "shape-p", "seconds-k", "envelope", "shape"} <= names
