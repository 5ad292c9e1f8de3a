"""Workers: they serve the messages of a `run` model one after another, each by the generator that the model gives."""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING, Any

from kernbench_core.environment import Environment, Event, Initialize, Process, Signal
from kernbench_core.events.queue import OVER, EventQueue, step
from kernbench_core.messages import MsgBase
from kernbench_core.reporting import Rates, Reported

if TYPE_CHECKING:
    from kernbench_core.oplog.logger import OpLogger


class Worker:
    """Serve messages one after another: `msg` is in service since `start` ns; its last byte came, or comes, at `tail`.

    It is what a SimPy process would be that goes through all `steps` of `run` for one message after another: it waits
    for the events that they yield, `target` now, and others see it as its `process`. But no generator stands between,
    and it is given a message without an event (tools/bench_engine.py: a run() hop -25 %).
    """

    __slots__ = ("_clock", "_resume", "component", "msg", "process", "start", "steps", "tail", "target")

    def __init__(self, component: Works, env: Environment) -> None:
        self.component = component
        self.msg: Any = None
        self.start = self.tail = 0.0
        self.steps: Any = None
        self.target: Any = None
        self._clock = env.clock
        self._resume = self.resume
        self.process = WorkerProcess(env, self)

    def resume(self, event: Any) -> None:
        """Go on, from an event that has happened, until it has to wait for another or for a message.

        Without an event begin with the message that it was given.
        """
        component, clock, steps = self.component, self._clock, self.steps
        clock.active = self.process
        while True:
            try:
                if steps is None:
                    if event is not None and not event._ok:
                        raise _own_copy(event)
                    if self.msg is None and not component.queue:
                        component._idle.append(self)
                        event = None
                        break
                    steps = self.steps = component.begin_service(self)
                    event = next(steps, OVER)
                elif not event._ok:
                    event = _thrown(steps, event)
                elif event._value is None:
                    event = next(steps, OVER)  # for speed: no StopIteration is made (tools/bench_engine.py: -8 %)
                else:
                    event = step(steps, event._value)
                if event is OVER:
                    steps = self.steps = None
                    component.end_service(self)
                    event = None
                    continue
            except BaseException as error:
                self._fail(error)
                event = None
                break
            try:
                callbacks = event.callbacks
            except AttributeError:
                raise RuntimeError(f"Invalid yield value {event!r}") from None  # in the words of SimPy
            if callbacks is not None:  # else it has happened already
                callbacks.append(self._resume)
                break
        self.target = event
        clock.active = None

    def _fail(self, error: BaseException) -> None:
        """End as a process does that raises: whoever waits for it handles that, or the simulation ends."""
        traceback = error.__traceback__
        if traceback is not None and traceback.tb_next is not None:
            error.__traceback__ = traceback.tb_next
        process = self.process
        process._ok = False
        process._value = error
        process.env.schedule(process)


class WorkerProcess(Process):
    """Be the process that models and SimPy take a worker for: it can be waited for, and interrupted."""

    def __init__(self, env: Environment, worker: Worker) -> None:
        self.env = env
        self.callbacks = []
        self.worker = worker
        Initialize(env, self)

    @property
    def _resume(self) -> Any:
        return self.worker._resume

    @property
    def _generator(self) -> Any:  # type: ignore[override]
        return self.worker.steps

    @property
    def _target(self) -> Any:  # type: ignore[override]
        """What it waits for: without a service for a message, by a signal of which only an interrupt knows."""
        target = self.worker.target
        if target is None and self.is_alive:
            target = Signal()
            target.callbacks = [self._resume]
        return target

    @property
    def name(self) -> str:
        """The component that it works for."""
        return str(self.worker.component.id)


def _own_copy(event: Event) -> BaseException:
    """Return the exception of an event that failed, as a copy: its traceback will be that of one process."""
    event._defused = True
    copy: BaseException = type(event._value)(*event._value.args)
    copy.__cause__ = event._value
    return copy


def _thrown(steps: Any, event: Event) -> Any:
    """Throw what an event failed with into the steps; return what they yield then, or OVER."""
    try:
        return steps.throw(_own_copy(event))
    except StopIteration:
        return OVER


def delegated(steps: Any) -> Any:
    """Go through what a `run` gave that is no generator, as `yield from` does."""
    yield from steps


class Works(Reported):
    """Have workers that serve what arrives, as a `run` model does, and tell the op log of each service."""

    __slots__ = ("_computes", "_idle", "_op_logger", "_picks", "_splits", "_time", "id", "rates")

    id: str
    rates: Rates
    _time: EventQueue
    _op_logger: OpLogger | None
    _computes: bool
    _picks: bool
    _splits: bool

    def __init__(self) -> None:
        super().__init__()
        #: The workers that wait for a message, the one that became idle last at the end.
        self._idle: list[Worker] = []

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """Send on what follows `msg`."""
        raise NotImplementedError

    def take_answer(self, msg: MsgBase) -> None:
        """Take the answer to what was sent from here."""
        raise NotImplementedError

    def _on_process_start(self, msg: MsgBase, t: float) -> None:
        if self._op_logger is not None and msg.data_op:
            self._op_logger.record_start(t, self.id, msg)

    def _on_process_end(self, msg: MsgBase, t: float) -> None:
        if self._op_logger is not None and msg.data_op:
            for observer in self._observers:
                observer.served(self, msg)
            self._op_logger.record_end(t, self.id, msg)

    def _arrive_run(self, msg: MsgBase) -> None:
        if msg.reply and msg.hop == len(msg.path) - 1:
            self.take_answer(msg)
        elif self._splits:
            model: Any = self
            for piece in model.split(msg):
                self._give_to_worker(piece)
        elif self._idle:  # inlined from _give_to_worker for speed (tools/bench_engine.py: a run() hop -2 %)
            worker = self._idle.pop()
            worker.msg = msg
            worker.resume(None)
        else:
            self.queue.append(msg)

    def _give_to_worker(self, msg: MsgBase) -> None:
        """Give a message to the worker that became idle last, or keep it until one is."""
        if self._idle:
            worker = self._idle.pop()
            worker.msg = msg
            worker.resume(None)
        else:
            self.queue.append(msg)

    def begin_service(self, worker: Worker) -> Any:
        """Begin to serve what the worker was given, or else the next of what waits; return the generator of that."""
        model: Any = self
        msg = worker.msg
        if msg is None:
            worker.msg = msg = model.pick(self.queue) if self._picks else self.queue.popleft()
        worker.start, worker.tail = self._time.now, msg.tail
        if self._op_logger is not None and msg.data_op:
            self._on_process_start(msg, worker.start)
        steps = model.run(self.env, msg)
        return steps if type(steps) is GeneratorType or hasattr(steps, "gi_frame") else delegated(steps)

    def end_service(self, worker: Worker) -> None:
        """Count the service that is over, and send its message on."""
        msg, start, tail, end = worker.msg, worker.start, worker.tail, self._time.now
        worker.msg = None
        if self._op_logger is not None and msg.data_op:
            self._on_process_end(msg, end)
        service = end - start
        self.served += 1
        self.busy_ns += service  # inlined from note_busy, as below
        if self._observers:
            for observer in self._observers:
                observer.was_busy(self, service, end)
        msg.service += service
        if self._computes:
            self.rates.note(self, msg, service)  # type: ignore[arg-type]  # it is a component
        if tail > start:  # it acted on the head: the last byte is still to come
            self.emit(msg, end, tail + service)
        else:
            if start != tail:
                waited = start - tail  # inlined from note_wait for speed (tools/bench_engine.py: a run() hop -2 %)
                msg.queueing += waited
                self.waits += 1
                self.waited_ns += waited
                if waited > self.longest_wait_ns:
                    self.longest_wait_ns = waited
                for observer in self._observers:
                    observer.waited(self, waited, start)
            self.emit(msg, end, end)
