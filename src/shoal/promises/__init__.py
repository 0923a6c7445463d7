"""Promises: what must hold of a release. A promise judges groups of records; it knows no method."""

from shoal.core.spec import Family
from shoal.promises.base import Promise

PROMISES: Family[Promise] = Family(
    "promise",
    __name__,
    {
        "k-anonymity": "k_anonymity:KAnonymity",
        "l-diversity": "l_diversity:LDiversity",
        "t-closeness": "t_closeness:TCloseness",
        "alpha-k-anonymity": "alpha_k_anonymity:AlphaKAnonymity",
        "beta-likeness": "beta_likeness:BetaLikeness",
        "k-map": "k_map:KMap",
        "delta-presence": "delta_presence:DeltaPresence",
        "trajectory-anonymity": "trajectory_anonymity:TrajectoryAnonymity",
        "z-anonymity": "z_anonymity:ZAnonymity",
        "kP-anonymity": "kp_anonymity:KPAnonymity",
    },
)

__all__ = ["PROMISES", "Promise"]
