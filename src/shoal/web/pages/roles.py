"""Step 2: what each column gives away, and how it may become less precise."""

from __future__ import annotations

from shoal.core.errors import ShoalError
from shoal.web.choices import ROLES, Choice, Choices
from shoal.web.html import Markup, Option, button, el, select, table
from shoal.web.pages.layout import document, failed, form, heading, on
from shoal.web.project import Project

MOST_COLUMNS = 200  # columns with a list each


def roles(project: Project, error: ShoalError | None = None) -> str:
    """A role for every column."""
    chosen = project.chosen
    names = list(chosen.columns)
    known = [n for n in names if not (chosen.kind == "curves" and chosen.columns[n].why == "an instant of a curve")]
    rows = [row(project, n, names.index(n)) for n in known[:MOST_COLUMNS]]
    instants = len(names) - len(known)
    missing = chosen.ready()
    return document(
        f"Roles of {project.name}",
        [
            heading(
                "What does each column give away?",
                "Every role is a guess with its reason: read it, correct it. What nobody decided on is not released.",
            ),
            failed(error) if error is not None else None,
            el("p", f"{instants:,} columns are the instants of a curve; outsiders may know them.", class_="note")
            if instants
            else None,
            form(
                project,
                "roles",
                table(["Column", "Role", "How it becomes less precise", "Why"], rows, caption="Roles of the columns"),
                el("p", button("Save roles"), class_="go nojs"),
                kind="roles",
            ),
            el("p", missing, class_="note") if missing else None,
            on(
                project,
                "promise",
                el("a", "Views of several roles, side by side", href=f"/p/{project.id}/views", class_="file"),
            ),
        ],
        project=project,
        step="roles",
    )


def row(project: Project, name: str, at: int) -> list[Markup | str]:
    """One column: role, hierarchy, reason."""
    choice = project.chosen.columns[name]
    allowed = {n: w for n, w in ROLES.items() if n != "time" or project.chosen.kind == "stream"}
    options = [Option(role, f"{role}: {words}") for role, words in allowed.items()]
    pick = select(
        f"role-{at}", options, choice.role, aria_label=f"Role of {name}", data_submits=True, autocomplete="off"
    )
    how = hierarchy_words(choice)
    editor = (
        el("a", how, href=f"/p/{project.id}/column/{at}")
        if choice.role == "quasi" and not choice.of
        else el("span", how)
    )
    return [el("strong", name), pick, editor, el("span", choice.why, class_="soft")]


def hierarchy_words(choice: Choice) -> str:
    """A hierarchy in a few words.

    >>> hierarchy_words(Choice("quasi", "", {"hierarchy": {"use": "prefix", "length": 5}}))
    'prefix: length 5'
    """
    if choice.role != "quasi":
        return "–"
    said = choice.hierarchy
    if said is None:
        return "by its type"
    if isinstance(said, str):
        return said
    more = [f"{n} {'…' if isinstance(v, dict | list) else v}" for n, v in said.items() if n != "use"]
    return f"{said.get('use')}: {', '.join(more)}" if more else str(said.get("use"))


def chosen_roles(choices: Choices, sent: dict[str, str]) -> Choices:
    """The choices with the roles that a form sent; nobody is the subject twice."""
    import msgspec

    from shoal.core.errors import UsageError

    names = list(choices.columns)
    columns = dict(choices.columns)
    for key, role in sent.items():
        place = key.removeprefix("role-")
        if not key.startswith("role-") or not place.isdigit() or int(place) >= len(names):
            continue
        if role not in ROLES:
            raise UsageError("there is no such role", where="roles", hint=f"one of: {', '.join(ROLES)}")
        name = names[int(place)]
        if columns[name].role != role:
            columns[name] = msgspec.structs.replace(
                columns[name],
                role=role,
                why=f"you said so ({columns[name].why})"
                if "you said so" not in columns[name].why
                else columns[name].why,
            )
    for only in ("subject", "time"):
        several = [n for n, c in columns.items() if c.role == only]
        if len(several) > 1:
            raise UsageError(
                f"two columns are the {only}: {several[0]} and {several[1]}",
                where="roles",
                hint="keep one; the other may be an identifier",
            )
    settings = choices.settings
    return msgspec.structs.replace(choices, columns=columns, settings=settings)
