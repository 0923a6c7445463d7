"""The certificate of a release on the command line: what was read and written must be what is signed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli.options import To, only_with
from shoal.cli.terminal import say
from shoal.core.errors import InputError

if TYPE_CHECKING:
    from shoal.core.release import Release
    from shoal.release.base import Job
    from shoal.release.certificate import File


class Certifying:
    """Made before anything is read: that it can be signed is known, and what the inputs were then."""

    def __init__(self, file: str, to: To, named: Mapping[str, str | None]) -> None:
        from shoal.connect.sql import is_address
        from shoal.core.keys import KeyRing
        from shoal.release.certificate import public_key

        only_with(
            to.output not in (None, "-") and not is_address(to.output or ""),
            "`-o FILE`: a certificate names files",
            certificate=True,
        )
        only_with(not is_address(named["input"] or ""), "a file to read: a certificate names files", certificate=True)
        only_with(not to.dry_run, "a release, which --dry-run does not write", certificate=True)
        self._keys = KeyRing.load()
        public_key(self._keys)
        self._file, self._named = file, named
        self._read = self._digests("input", "policy")

    def write(self, release: Release, job: Job, options: Mapping[str, Any], written: str | None) -> None:
        """Sign what was read and written. Whoever exchanged a file meanwhile gets no signature for it."""
        import msgspec

        from shoal.connect.files import write_text
        from shoal.release.certificate import certify

        if release.data is None:
            say("no certificate: nothing was released")
            return
        files = self._digests(*self._named)
        if release.written:  # a table that never was in memory is digested where it was put
            written = files["output"][0].sha256
        for part, before in self._read.items():
            if files[part] != before:
                raise InputError(
                    f"the {part} was changed while the release was made: no certificate", where=self._named[part]
                )
        if [file.sha256 for file in files["output"]] != [written]:
            raise InputError("this is not the release that was verified: no certificate", where=self._named["output"])
        signed = certify(
            files,
            self._keys,
            promises=[msgspec.to_builtins(promise, enc_hook=repr) for promise in job.promises],
            findings=[str(finding) for finding in release.report.findings],
            kept=release.report.verified,
            options=options,
        )
        write_text(signed.decode(), self._file)
        say(f"certificate: {self._file}")

    def _digests(self, *parts: str) -> dict[str, list[File]]:
        from shoal.connect.formats import file_of, parts_of
        from shoal.release.certificate import File

        named = {part: path for part in parts if (path := self._named[part]) and path != "-"}
        return {part: [File.of(part, Path(file_of(p))) for p in parts_of(path)] for part, path in named.items()}
