"""Where certificates are kept, and the one that a run is made with.

`sonde doctor --against` keeps a certificate in the cache by the identity of its model. A run of
that model finds it there, or is given it, and has a copy of its own, with its digest in the
manifest, so that a report can show it wherever the folder is taken.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.core.abilities import Model, Scores, deciding, identity_key
from sonde.core.answers import Answer, Scored
from sonde.core.certificates import GAPS, Certificate, Rechecks, in_words
from sonde.core.columns import one_by_one
from sonde.core.errors import CertificateError, StoreError, UsageError
from sonde.core.files import whole
from sonde.core.prompts import Prompt, put
from sonde.models import ELSEWHERE
from sonde.models.load import scheme_of
from sonde.models.options import cache_folder
from sonde.runs.shards import AnswersShards, Effort, shard_work
from sonde.store.manifest import Manifest
from sonde.store.manifest import versions as versions
from sonde.store.runs import CERTIFICATE, Writer
from sonde.store.shards import blocks_of, table_of

if TYPE_CHECKING:
    from sonde.evaluation.layout import Exhibit

FOLDER = "certificates"
MAKE = "sonde doctor -m MODEL --against hf:FOLDER"
ABSENT = (
    "No certificate: what another program computes was not held against the model's own numbers; "
    f"'{MAKE}' does it."
)
LATER = " There were answers before it was made, maybe of another model at the same address."
AGAIN = f"make it again with '{MAKE}'"

log = logging.getLogger(__name__)


def place(identity: Mapping[str, Any]) -> Path:
    """Where the certificate of a model is kept, or would be."""
    return cache_folder() / FOLDER / f"{identity_key(identity)}.json"


def file_named(out: str | Path | None) -> Path | None:
    """The file that a certificate is to be written into too; a folder is refused."""
    if out is not None and Path(out).is_dir():
        raise UsageError(f"{out} is a folder; name a file for the certificate")
    return None if out is None else Path(out)


def keep(found: Certificate, out: Path | None = None) -> list[Path]:
    """Write a certificate where runs of its model find it, and into a file; where it was written.

    Without the first, which a cache that cannot be written only warns of, a run must be given it.
    """
    kept = []
    try:
        kept.append(_write(found, place(found.model)))
    except OSError as error:
        log.warning("the certificate is not kept in the cache (%s); give a run the file", error)
    if out is not None:
        try:
            kept.append(_write(found, out))
        except OSError as error:
            raise StoreError(f"{out} cannot be written: {error.strerror}") from None
    return kept


def _write(found: Certificate, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        file.write(found.to_json().encode(errors="backslashreplace"))
    return path


def read(path: Path) -> Certificate:
    """The certificate of a file; one that was changed is refused."""
    try:
        return Certificate.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"there is no certificate {path}; make one with '{MAKE}'") from None
    except OSError as error:
        raise UsageError(f"the certificate {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CertificateError(f"{path} is not used as a certificate: {error}; {AGAIN}") from None


def find(model: Model, given: Certificate | str | Path | None = None) -> Certificate | None:
    """The certificate of a model: the one `given`, which must be its own, or else the cache's.

    A name says little of what another program computes: its model is asked one prompt again.
    """
    own = model.identity.described()
    if isinstance(given, str | Path):
        given = read(Path(given))
    if given is not None:
        if not given.belongs_to(own):
            raise UsageError(
                f"the certificate is that of another model ({unlike(given, own)}); make one of "
                f"{own['name']} with '{MAKE}', or leave out --certificate"
            )
        _recheck(model, given)
        return given
    path = place(own)
    if not path.is_file():
        return None
    try:
        found = read(path)
        if found.belongs_to(own):
            _recheck(model, found)
            return found
        log.warning("%s is not used: it is the certificate of another model; %s", path, AGAIN)
    except (CertificateError, UsageError) as error:
        log.warning("%s", error)
    return None


def _recheck(model: Model, found: Certificate) -> None:
    """Refuse the certificate of a model that another program computes if it answers otherwise."""
    asked = found.recheck
    if asked is None or not is_foreign(model.identity.name) or not isinstance(model, Scores):
        return
    answer = _answer(model, asked.prompt)
    if not isinstance(answer, Scored) or not asked.same(answer.logps):
        raise CertificateError(
            f"the certificate is not used: {model.identity.name} gives other numbers than when it "
            f"was certified ({found.made}); {AGAIN}"
        )


def _answer(model: Scores, prompt: Prompt) -> Answer:
    """The answer to a prompt; workers answer it as a shard."""
    if isinstance(model, AnswersShards):
        shard = put([prompt])
        effort = Effort(prompts=1, work=shard_work(shard), told=lambda _done, _total: None)
        ((_, make),) = model.answer_shards(iter([(0, shard)]), effort)
        (block,) = blocks_of(table_of(Path("the recheck"), bytes(make())))
        (answered,) = block.each()
        return answered.answer
    answers: dict[int, Answer] = dict(one_by_one(model.score([prompt])))
    return answers[0]


def unlike(found: Certificate, identity: Mapping[str, Any]) -> str:
    """In what a certificate's model is another than this."""
    known = deciding(identity)
    pairs = ((name, found.model.get(name), known[name]) for name in known)
    return ", ".join(f"{name} {then!r}, not {now!r}" for name, then, now in pairs if then != now)


@contextmanager
def attached(writer: Writer, model: Model, found: Certificate | None) -> Iterator[None]:
    """Give a run its certificate, and have what it knows asked again while the run goes on.

    A run that has none and needs it says so; one that is bad is refused.
    """
    foreign = is_foreign(model.identity.name)
    if found is not None:
        # what is at an address now need not be what has answered
        writer.certify(found, later=foreign and bool(writer.folder.shards()))
    else:
        found = of_run(writer.folder.path, writer.folder.manifest())
        if found is not None:
            _recheck(model, found)
    if found is None and foreign:
        log.warning("%s", ABSENT)
    refuse_broken(found, writer.folder.path)
    known = None if found is None else found.recheck
    if known is None or not isinstance(model, Rechecks):
        yield
        return
    model.recheck(known)
    try:
        yield
    finally:
        model.recheck(None)


def refuse_broken(found: Certificate | None, run: Path | None = None) -> None:
    """Refuse a model whose certificate says that it is broken; `run`: the folder that has it."""
    if found is None or found.verdict != "broken":
        return
    file = place(found.model) if run is None else run / CERTIFICATE
    if run is not None:
        other = "give another folder with -o"
    else:
        other = f"remove {file}" if file.is_file() else "leave out --certificate"
        other += ", to run without one"
    raise CertificateError(f"{in_words(found)} Mend that and {AGAIN}; or {other}")


def is_foreign(name: str) -> bool:
    """Whether the numbers of a model are computed by another program than sonde."""
    return scheme_of(name)[0] in ELSEWHERE


def doubt(manifest: Manifest) -> str:
    """Why a run's numbers are not known to be those of its model; empty if nothing says so."""
    found = manifest.certificate
    if not found:
        return "there is no certificate" if is_foreign(manifest.model["name"]) else ""
    if found["verdict"] == "equal":
        return ""
    return f"its certificate says {found['verdict']}, beside {found['reference']}"


def of_run(path: Path, manifest: Manifest) -> Certificate | None:
    """A run's own certificate; one that is not as its manifest says is refused."""
    if not manifest.certificate:
        return None
    file = path / CERTIFICATE
    mend = "run the same 'sonde run' again, with its certificate in the cache or by --certificate"
    try:
        found = Certificate.from_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}; {mend}") from None
    except ValueError as error:
        raise StoreError(f"{file} is not the run's certificate: {error}; {mend}") from None
    named = found.entry.items() <= manifest.certificate.items()
    if not named or not found.belongs_to(manifest.model):
        raise StoreError(f"{file} is not the certificate that the run was made with; {mend}")
    return found


def exhibit(path: Path, manifest: Manifest) -> list[Exhibit]:
    """The differences that a run's certificate lists, as a table; none without a certificate."""
    from polars import DataFrame

    from sonde.evaluation.layout import Exhibit

    found = of_run(path, manifest)
    if found is None:
        return []
    named = {"against": f"next to {found.reference['name']}", "backwards": "in reverse order"}
    rows = []
    for name in GAPS:
        gaps = getattr(found, name)
        nats = {k: f"{getattr(gaps, k):.2g}" for k in ("largest", "median", "option")}
        differ = f"{gaps.differ} of {gaps.prompts}"
        rows.append({"prompted": named.get(name, "one by one"), **nats, "other answers": differ})
    reasons = f" Not equal because {'; '.join(found.reasons)}." if found.reasons else ""
    note = (
        "Differences of log-probabilities on fixed prompts, in nats: the largest and the median of "
        f"a token, the largest of an option. Made {found.made}; digest {found.digest[:16]}."
        f"{reasons}{moved(found, manifest.model)}"
    )
    frame = DataFrame(rows)
    return [Exhibit("certificate", f"Certificate: {found.verdict}", frame, note=note)]


def moved(found: Certificate, identity: Mapping[str, Any]) -> str:
    """What was otherwise when the model was certified, such as the device; empty if nothing was."""
    then, now = found.model["details"], identity["details"]
    other = [k for k in then if k in now and then[k] != now[k]]
    said = "; ".join(f"{key} was {then[key]} and is {now[key]}" for key in other)
    return f" It was made elsewhere: {said}." if said else ""
