//! The loop of a worker: commands, a round, answers.
//!
//! Law: in each turn of the loop the commands that have come are obeyed in their order, then tasks
//! and operators have a round, then the questions that can be answered are. A worker has time to
//! spare in a round only if no dataflow was behind after the turn before, and no command has come
//! since.

use std::time::Duration;

use crate::worker::Worker;

/// What a worker does for those who command it: it obeys, and answers. The run time knows no more
/// of it.
pub trait Service: 'static {
    /// What the service is told.
    type Command: Send + 'static;

    /// Obeys a command.
    fn obey(&mut self, worker: &mut Worker, command: Self::Command);

    /// Answers the questions that can be answered by now, or a part of an answer.
    fn answer(&mut self);

    /// Whether an answer is under way, so that there is work although no operator has any.
    fn is_answering(&self) -> bool;

    /// Whether a dataflow has not yet followed the inputs to their frontier.
    fn is_behind(&self) -> bool;

    /// Drops every dataflow, so that the worker can end.
    fn shut_down(&mut self, worker: &mut Worker);
}

/// A worker and its service.
pub struct Host<S: Service> {
    worker: Worker,
    service: S,
}

impl<S: Service> Host<S> {
    /// A worker on the caller's thread, which has its turns when the caller [says](Host::turn).
    pub fn on_this_thread(serve: impl FnOnce(&Worker) -> S) -> Host<S> {
        Host::of(Worker::on_this_thread(), serve)
    }

    pub(crate) fn of(worker: Worker, serve: impl FnOnce(&Worker) -> S) -> Host<S> {
        let service = serve(&worker);
        Host { worker, service }
    }

    /// The service.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// Obeys a command.
    pub fn obey(&mut self, command: S::Command) {
        self.worker.context().set_behind(true);
        self.service.obey(&mut self.worker, command);
    }

    /// One turn without sleep. Returns whether a dataflow is behind.
    pub fn turn(&mut self) -> bool {
        self.turn_after(Duration::ZERO)
    }

    /// One turn, after a sleep of at most `sleep_max` if nothing is to be done.
    pub(crate) fn turn_after(&mut self, sleep_max: Duration) -> bool {
        self.worker.begin_round(self.service.is_answering(), sleep_max);
        self.service.answer();
        self.worker.end_round();
        let context = self.worker.context();
        context.set_behind(context.is_behind() && self.service.is_behind());
        context.is_behind()
    }
}

impl<S: Service> Drop for Host<S> {
    fn drop(&mut self) {
        self.service.shut_down(&mut self.worker);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::steps::Meter;
    use crate::worker::WorkerContext;

    /// Notes in each turn whether there was time to spare.
    struct Noting {
        context: WorkerContext,
        meter: Meter,
        is_behind: bool,
        had_spare_time: Rc<RefCell<Vec<bool>>>,
    }

    impl Noting {
        fn on_this_thread(kind: &'static str, had_spare_time: &Rc<RefCell<Vec<bool>>>) -> Host<Noting> {
            Host::on_this_thread(|worker| Noting {
                context: worker.context().clone(),
                meter: worker.context().meter(kind),
                is_behind: false,
                had_spare_time: Rc::clone(had_spare_time),
            })
        }
    }

    impl Service for Noting {
        /// Whether dataflows are behind from now on.
        type Command = bool;

        fn obey(&mut self, _worker: &mut Worker, is_behind: bool) {
            self.is_behind = is_behind;
        }

        fn answer(&mut self) {
            let _step = self.meter.step();
            self.had_spare_time.borrow_mut().push(self.context.has_spare_time());
        }

        fn is_answering(&self) -> bool {
            false
        }

        fn is_behind(&self) -> bool {
            self.is_behind
        }

        fn shut_down(&mut self, _worker: &mut Worker) {}
    }

    #[test]
    fn workers_of_one_thread_have_their_own_spare_time_and_steps() {
        let (noted, other_noted) = (Rc::default(), Rc::default());
        let mut host = Noting::on_this_thread("mine", &noted);
        let mut other = Noting::on_this_thread("other", &other_noted);
        host.obey(true);
        // The turns of the two alternate, as those of two sessions of one caller do.
        for _ in 0..3 {
            assert!(host.turn());
            assert!(!other.turn());
        }
        host.obey(false);
        assert!(!host.turn() && !host.turn());
        assert_eq!(noted.take(), [false, false, false, false, true]);
        assert_eq!(other_noted.take(), [true; 3]);
        let counted = |host: &Host<Noting>| {
            let stats = host.service().context.clock().stats();
            stats.iter().map(|stats| (stats.operator, stats.count)).collect::<Vec<_>>()
        };
        assert_eq!((counted(&host), counted(&other)), (vec![("mine", 5)], vec![("other", 3)]));
        other.service().context.clock().reset();
        assert_eq!((counted(&host), counted(&other)), (vec![("mine", 5)], vec![("other", 0)]));
    }
}
