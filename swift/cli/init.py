"""swift-init: start, stop and watch the servers and daemons of this machine.

A service runs once for each of its configuration files; a pid file says which process that is. A start is
over when the process says that it is ready (sd_notify), or ends.
spec: cli-and-config.md §8.1
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from swift.base.errors import ConfigError
from swift.base.nearest import nearest
from swift.config.commandline import CommandLine, reports_errors
from swift.runtime.service.launch import LaunchedProcess, Launcher, raise_limits
from swift.runtime.service.processes import ServiceProcess, Signaller, running_processes
from swift.runtime.service.services import (
    GROUPS,
    MAIN_SERVERS,
    RUN_DIR,
    SWIFT_DIR,
    Service,
    config_paths,
    is_configured,
    is_group,
    parse_services,
    pid_file,
)

EXAMPLES = """commands:
  start            start the services that do not run
  stop             end the services that run (SIGTERM)
  shutdown         finish open requests, then end (SIGHUP)
  restart          stop, then start; nothing is stopped when a configuration is no good
  reload           shutdown, then start (also force-reload); daemons are restarted
  reload-seamless  reload the configuration of servers without refused requests (SIGUSR1)
  status           list the processes; the exit status is 0 if all of them run
  kill             stop, without an error when nothing runs
  once             run one pass of daemons, and wait for its end
  no-daemon        run in the foreground, with the log on the terminal
  no-wait          start and return at once

A server is a name such as proxy-server or proxy, object.1 for /etc/swift/object-server/1.conf, a pattern such
as 'object-*', or one of the groups all, main (the four servers) and rest (the daemons).

examples:
  swift-init main start
  swift-init object-server.1 object-auditor.1 restart
  swift-init rest status --format json
"""


class Manager:
    """Implements the commands; each returns the number of services in an unexpected state."""

    def __init__(self, services: Sequence[Service], args: argparse.Namespace, say: Callable[[str], None]):
        self._services = services
        self._args = args
        self._say = say
        self._launcher = Launcher(args.run_dir, args.swift_dir, say)
        self._signaller = Signaller(
            say, wait_s=args.kill_wait, kills=args.kill_after_timeout, verbose=args.verbose
        )

    # --- starting

    def start(self, *, once: bool = False) -> int:
        """Start what is not running."""
        once = once or self._args.once
        started, missing = self._launch(once=once, in_foreground=self._args.no_daemon)
        if self._args.no_daemon:
            return missing + sum(process.wait() != 0 for process in started)
        if self._args.no_wait:
            for process in started:
                process.detach()
            return missing
        return missing + sum(not process.await_ready() for process in started)

    def once(self) -> int:
        """Run one pass of each daemon; its output is passed on."""
        started, missing = self._launch(once=True, in_foreground=False)
        return missing + sum(process.wait() != 0 for process in started)

    def no_daemon(self) -> int:
        """Run in the foreground."""
        self._args.no_daemon = True
        return self.start()

    def no_wait(self) -> int:
        """Start without waiting."""
        self._args.no_wait = True
        return self.start()

    def _launch(self, *, once: bool, in_foreground: bool) -> tuple[list[LaunchedProcess], int]:
        raise_limits(self._say)
        started: list[LaunchedProcess] = []
        missing = 0
        for service in self._services:
            if not service.is_known:
                self._say(f"Unknown server {service}")
                missing += 1
                continue
            running = self._running(service)
            for each in running:
                self._say(f"{service} running ({each.pid} - {each.config})")
            configs = self._configs(service)
            if not configs:
                missing += self._args.strict
                continue
            free = [config for config in configs if config not in {each.config for each in running}]
            if not free:
                self._say(f"{service} already started...")
                missing += 1
            for config in free:
                launched = self._launcher.launch(service, config, once=once, in_foreground=in_foreground)
                if launched is None:
                    missing += self._args.strict
                else:
                    started.append(launched)
        return started, missing

    def _configs(self, service: Service) -> list[str]:
        number = self._args.config_num
        configs = config_paths(service, self._args.swift_dir, number)
        if not configs:
            which = f" number {number}" if number else ""
            self._say(f"Unable to locate config{which} for {service}")
        for config in configs:
            if not is_configured(service, config):
                self._say(f"Unable to find {service} config section in {config}")
        return [config for config in configs if is_configured(service, config)]

    # --- ending

    def _running(self, service: Service) -> list[ServiceProcess]:
        found = running_processes(
            service, self._args.run_dir, self._args.swift_dir, self._say if self._args.verbose else None
        )
        if not self._args.config_num:
            return found
        wanted = {
            pid_file(service, config, self._args.run_dir, self._args.swift_dir)
            for config in config_paths(service, self._args.swift_dir, self._args.config_num)
        }
        return [each for each in found if each.pid_file in wanted]

    def _end(self, *, graceful: bool) -> int:
        failed = 0
        told: list[ServiceProcess] = []
        for service in self._services:
            running = self._running(service)
            if not running:
                self._say(f"No {service} running")
                failed += 1
            told += self._signaller.end(running, graceful=graceful)
        # A service that is not there is told of; what counts is whether there was anything to end.
        if told:
            failed = 0
        return failed + self._signaller.wait_for_ends(told)

    def stop(self) -> int:
        """End what runs."""
        return self._end(graceful=self._args.graceful)

    def shutdown(self) -> int:
        """End servers after their open requests."""
        return self._end(graceful=True)

    def kill(self) -> int:
        """End what runs, if anything does."""
        if not any(self._running(service) for service in self._services):
            for service in self._services:
                self._say(f"No {service} running")
            return 0
        return self.stop()

    def restart(self) -> int:
        """Stop, then start; nothing happens when a configuration is no good."""
        if problems := self._problems():
            return problems
        self.stop()
        return self.start()

    def _problems(self) -> int:
        """Check the configurations of what is to be started; print and count those that are no good."""
        todo = [
            (service, config)
            for service in self._services
            if service.is_known
            for config in config_paths(service, self._args.swift_dir, self._args.config_num)
            if is_configured(service, config)
        ]
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            found = list(pool.map(lambda each: self._launcher.startup_problem(*each), todo))
        for (service, config), problem in zip(todo, found, strict=True):
            if problem:
                self._say(f"{service} would not start ({config}): {problem}; nothing was stopped")
        return sum(map(bool, found))

    def reload(self) -> int:
        """End servers gracefully, which frees their ports at once, and start them again.

        Nothing happens when a configuration is no good.
        """
        if problems := self._problems():
            return problems
        told: list[ServiceProcess] = []
        for service in self._services:
            told += self._signaller.end(self._running(service), graceful=True)
        self._signaller.wait_for_ends([each for each in told if not each.service.is_server])
        for each in told:
            each.remove_pid_file()
        return self.start()

    def reload_seamless(self) -> int:
        """Send SIGUSR1 to servers; restart services without workers to hand over to."""
        failed = 0
        others: list[Service] = []
        for service in self._services:
            running = self._running(service)
            if not running:
                self._say(f"No {service} running")
                # Not every node runs all of a group: what has no configuration is not missing.
                failed += self._args.strict or self._has_config(service)
            elif service.is_server:
                failed += self._signaller.renew(running, wait=not self._args.no_wait)
            else:
                others.append(service)
        if others:
            failed += Manager(others, self._args, self._say).restart()
        return failed

    def _has_config(self, service: Service) -> bool:
        configs = config_paths(service, self._args.swift_dir, self._args.config_num)
        return any(is_configured(service, config) for config in configs)

    # --- looking

    def status(self) -> int:
        """Tell what runs."""
        missing = 0
        rows = []
        for service in self._services:
            running = self._running(service)
            missing += not running
            rows += [
                {"server": str(service), "pid": each.pid, "config": each.config} for each in running
            ] or [{"server": str(service), "pid": None, "config": None}]
        if self._args.format == "json":
            self._say(json.dumps(rows, indent=2))
            return missing
        for row in rows:
            if row["pid"] is None:
                self._say(f"No {row['server']} running")
            else:
                self._say(f"{row['server']} running ({row['pid']} - {row['config']})")
        return missing


COMMANDS: dict[str, Callable[[Manager], int]] = {
    "start": Manager.start,
    "stop": Manager.stop,
    "shutdown": Manager.shutdown,
    "restart": Manager.restart,
    "reload": Manager.reload,
    "force-reload": Manager.reload,
    "reload-seamless": Manager.reload_seamless,
    "status": Manager.status,
    "kill": Manager.kill,
    "once": Manager.once,
    "no-daemon": Manager.no_daemon,
    "no-wait": Manager.no_wait,
}


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-init",
        usage="swift-init <server>[.<config>] [<server>[.<config>] ...] <command> [options]",
        description="Start, stop and watch the servers and daemons of this machine.",
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("words", nargs="*", metavar="server", help="servers, and the command")
    add("-v", "--verbose", action="store_true", help="display verbose output")
    add("-w", "--no-wait", action="store_true", help="do not wait until a server is ready")
    add("-o", "--once", action="store_true", help="only run one pass of a daemon")
    add("-n", "--no-daemon", action="store_true", help="run in the foreground")
    add("-g", "--graceful", action="store_true", help="send SIGHUP to servers")
    add("-c", "--config-num", type=int, default=0, metavar="N", help="only the Nth configuration of a server")
    add(
        "-k",
        "--kill-wait",
        type=float,
        default=15,
        metavar="N",
        help="wait N seconds for processes to end (default: %(default)s)",
    )
    add("-r", "--run-dir", default=RUN_DIR, help="directory of the pid files (default: %(default)s)")
    add("--swift-dir", default=SWIFT_DIR, help="directory of the configuration (default: %(default)s)")
    strict = parser.add_mutually_exclusive_group()
    strict.add_argument(
        "--strict",
        action="store_true",
        default=None,
        help="a missing configuration is an error; the default when all servers are named",
    )
    strict.add_argument(
        "--non-strict",
        action="store_false",
        dest="strict",
        default=None,
        help="a missing configuration is no error; the default for groups and patterns",
    )
    add("--kill-after-timeout", action="store_true", help="SIGKILL for what has not ended after --kill-wait")
    parser.add_format("output format of status")
    return parser


def _parse_arguments(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None
) -> tuple[argparse.Namespace, str]:
    """Return the options with only servers left in ``words``, and the command.

    The error of wrong usage is last.
    """
    args = parser.parse_intermixed_args(argv)
    if len(args.words) < 2:
        return args, ""
    # Both orders were in use once: the command first, as init scripts have it, or last.
    if args.words[-1] in COMMANDS or args.words[0] not in COMMANDS:
        command = args.words.pop()
    else:
        command = args.words.pop(0)
    return args, command


def _check_word(word: str) -> None:
    """Refuse what is no server, daemon or group. Raises ``ConfigError``."""
    services = parse_services([word])
    if not services or not all(service.is_known for service in services):
        known = (*GROUPS["all"], *(name.removesuffix("-server") for name in MAIN_SERVERS), *GROUPS)
        raise ConfigError(f"unknown server {word}{nearest(word.partition('.')[0], known)}")


@reports_errors("swift-init")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when all is as wanted, else 1."""
    parser = make_parser()
    args, command = _parse_arguments(parser, argv)
    if command not in COMMANDS:
        parser.print_help()
        unknown = f"unknown command, {command}{nearest(command, COMMANDS)}"
        print("ERROR: " + (unknown if command else "specify server(s) and command"))
        return 1
    if args.strict is None:
        args.strict = not any(is_group(word) for word in args.words)
    services = parse_services(args.words)
    for word in args.words:
        _check_word(word)
    manager = Manager(services, args, lambda text: print(text, flush=True))
    return 1 if COMMANDS[command](manager) else 0


if __name__ == "__main__":
    raise SystemExit(main())
