"""Does `lodger.logging` run a database's log as the command does?"""

import pickle

import pytest

import lodger

MODEL = """
[logging]
database = "redis"
captured = "redis"
commit = "block"
clients = 2
transactions = 2000
segment_kib = 64
"""


def test_modes_and_clients_are_chosen() -> None:
    model = lodger.Workload.from_logging(MODEL)
    assert model.kind == "logging"
    blocks = lodger.logging(model, "sz985").lodger.logging
    stored = lodger.logging(model, "2b-ssd", commit="ba", clients=4).lodger.logging
    assert blocks is not None
    assert stored is not None
    assert (blocks.commit, blocks.clients) == ("block", 2)
    assert (stored.commit, stored.clients) == ("ba", 4)
    assert stored.transactions_per_s > blocks.transactions_per_s
    assert blocks.write_amplification is not None
    assert blocks.write_amplification > 1
    assert stored.write_amplification == 1
    assert blocks.exposed_bytes_max is None


def test_what_was_chosen_before_stays() -> None:
    model = lodger.Workload.from_logging(MODEL).committing(commit="async").committing(clients=3)
    result = lodger.logging(model, "sz985").lodger.logging
    assert result is not None
    assert (result.commit, result.clients) == ("async", 3)
    result = lodger.logging(model, "sz985", commit="block").lodger.logging
    assert result is not None
    assert (result.commit, result.clients) == ("block", 3)


def test_an_asynchronous_commit_says_what_a_crash_takes() -> None:
    model = lodger.Workload.from_logging(MODEL).committing(commit="async")
    result = lodger.logging(model, "sz985").lodger.logging
    assert result is not None
    # Nothing is written before the background writer wakes: all of it.
    assert result.exposed_bytes_max == result.log_bytes


def test_a_pickled_model_gives_the_same_result() -> None:
    model = lodger.Workload.from_logging(MODEL).committing(commit="async", clients=3)
    again = pickle.loads(pickle.dumps(model))
    first, second = (lodger.simulate(one, "sz985").lodger.logging for one in (model, again))
    assert first is not None
    assert first == second
    assert (first.commit, first.clients) == ("async", 3)


def test_what_cannot_be_is_said() -> None:
    model = lodger.Workload.from_logging(MODEL)
    with pytest.raises(lodger.InputError, match="no byte window"):
        lodger.logging(model, "pm963", commit="ba")
    with pytest.raises(lodger.InputError, match="`block`, `ba` or `async`"):
        model.committing(commit="never")  # type: ignore[arg-type]
    job = lodger.Workload.from_fio("[job]\nrw=read\nsize=1m\n")
    with pytest.raises(lodger.InputError, match="models of database logging"):
        job.committing(clients=2)


def test_what_is_no_model_is_refused() -> None:
    """A job file ran as if `simulate` had been asked."""
    job = lodger.Workload.from_fio("[j]\nrw=randread\nnumber_ios=5\nsize=1m\n")
    message = "`logging` needs a model of database logging, and `job.fio` is a fio job file"
    with pytest.raises(lodger.InputError, match=message) as caught:
        lodger.logging(job, "2b-ssd")
    assert caught.value.hint == "`simulate` runs it"
