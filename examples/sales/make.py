"""Invented weekly sales: ``python make.py`` writes ``sales.csv``."""

from shoal.datasets.series import sales_curves

if __name__ == "__main__":
    sales_curves(200, 26, seed=1).write_csv("sales.csv")
