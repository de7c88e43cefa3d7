# SPDX-License-Identifier: GPL-2.0
"""The cache and its locks."""

import os
import threading
from unittest import mock

from support import Case

# isort: split
from core import locks
from core.process import Failure


class Cache(Case):
    """locks.cache(), locks.lock() and the small helpers."""

    def test_cache(self):
        """The cache is where XDG_CACHE_HOME says."""
        self.assertEqual(locks.cache(), self.dir / "cache/hotpaths")
        self.assertTrue(locks.cache().is_dir())

    def test_no_cache(self):
        """A cache that cannot be made is told with what to set."""
        (self.dir / "file").touch()
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.dir / "file")}), self.fails("XDG_CACHE_HOME"):
            locks.cache()

    def test_lock(self):
        """A second holder waits for the first, and says so; another name does not."""
        order, started = [], threading.Event()

        def second():
            started.set()
            with locks.lock("x"):
                order.append("second")

        thread = threading.Thread(target=second)
        with locks.lock("x"):
            thread.start()
            started.wait()
            thread.join(0.2)
            self.assertTrue(thread.is_alive())
            with locks.lock("y"):
                order.append("first")
        thread.join(5)
        self.assertEqual(order, ["first", "second"])
        self.assertEqual(self.said.getvalue().count("waiting"), 1)
        self.assertIn(str(locks.cache() / "lock/x"), self.said.getvalue())

    def test_lock_is_left_on_failure(self):
        """A step that fails does not keep its lock."""
        with self.fails("x"), locks.lock("x"):
            raise Failure("x")
        with locks.lock("x"):
            self.assertEqual(self.said.getvalue(), "")
