"""The page of roles: what each sees, side by side, and what they learn together."""

from __future__ import annotations

from shoal.web.html import Child, Markup, cell, el, table
from shoal.web.pages.layout import document, heading, running, trouble
from shoal.web.project import Project
from shoal.web.views import SAMPLED, Roles, Seen


def views(project: Project) -> str:
    """Drop a policy, see its roles."""
    task = project.tasks.get("roles")
    body: list[Child] = [
        heading(
            "What does each role see?",
            "Drop a policy with several views: every role's view of this table side by side, and what roles learn "
            "when they put their views together.",
        ),
        el(
            "label",
            el("strong", "Drop a policy here, or choose one"),
            el("input", type="file", accept=".yaml,.yml"),
            el("progress", max="1", value="0", hidden=True, aria_label="Copying the file"),
            el("span", role="alert", class_="wrong"),
            class_="drop small",
            data_upload=f"/p/{project.id}/roleviews",
        ),
        trouble(task),
    ]
    if task is not None and task.state == "running":
        body.append(running(project, task, "Looking through every role's eyes"))
    elif task is not None and task.state == "done" and isinstance(task.result, Roles):
        body += shown(task.result, project)
    return document(f"Roles of {project.name}", body, project=project, step="roles")


def shown(found: Roles, project: Project) -> list[Child]:
    """The views and the verdicts about pairs of them."""
    sample = f" On the first {SAMPLED:,} rows." if project.frame.height > SAMPLED else ""
    told = [str(pool) for pool in sorted(found.checked.pools, key=lambda p: (not p.new, -p.share))]
    notes = [*found.checked.notes, *[f"{role}: {why}" for role, why in found.checked.failed.items()]]
    borrowed = "Keys that are not at hand were drawn for this look: tokens will read differently in service."
    return [
        el("p", f"{found.policy}: {len(found.seen)} roles.{sample}", class_="about"),
        el("p", borrowed, class_="note") if found.borrowed else None,
        el("div", [one(seen) for seen in found.seen], class_="roleviews"),
        el("h2", "What roles learn together"),
        el("ul", [el("li", text) for text in told], class_="points")
        if told
        else el("p", "Nothing that one of them does not see alone."),
        *[el("p", note, class_="note") for note in notes],
    ]


def one(seen: Seen) -> Markup:
    """One role's view."""
    if seen.rows is None:
        return el("section", el("h3", seen.role), el("p", seen.why, class_="note"))
    names = seen.rows.columns[:40]
    rows = [[cell(v) for v in row] for row in seen.rows.select(names).iter_rows()]
    return el("section", el("h3", seen.role), table(list(names), rows, caption=f"What {seen.role} sees", kind="even"))
