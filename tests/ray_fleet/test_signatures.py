"""The private names of Ray that rlprof-ray uses exist in each release that it supports."""

from importlib import metadata

import pytest

from rlprof_ray import _inside
from rlprof_ray._member import _SYSTEM
from tests.ray_fleet import signatures
from tests.signatures.record import number

SAID = signatures.RECORD.kept()


def test_the_floor_is_the_oldest_release_that_was_read():
    """rlprof-ray requires at least the oldest release of Ray on record, 2.49."""
    wanted = [one for one in metadata.requires("rlprof-ray") if one.startswith("ray")]

    assert tuple(sorted(SAID, key=number)) == tuple(SAID) == signatures.RELEASES
    assert [one.split(";")[0].strip() for one in wanted] == ["ray>=2.49"]
    assert number(signatures.RELEASES[0])[:2] == (2, 49)


@pytest.mark.parametrize("release", SAID)
def test_the_private_names_in_use_exist(release):
    """Each release has the handles, calls, state accessors and messages that rlprof-ray uses."""
    said = SAID[release]

    assert said["ActorHandle"] == list(signatures.HANDLE)
    assert said["__ray_call__"] == ["def __ray_call__(self, fn, *args, **kwargs)"]
    assert said["concurrency groups"] == [_inside.GROUP, _SYSTEM]
    way = "_connect_and_get_accessor" if number(release) >= (2, 53) else "_check_connected"
    assert said["GlobalState"] == [f"def {way}(self)"]
    (made,) = said["a handle"]
    assert made.endswith("_register_actor_handle(state, outer_object_ref, weak_ref)")
    assert said["FunctionActorManager"]
    assert (said["global_worker"], said["find_gcs_addresses"]) == (True, True)
    assert said["messages"] == ["core_worker_pb2", "gcs_pb2"]
    assert said[signatures.COMPILED] == list(signatures.CORE)
