//! Clients that are connected: to count them, to cancel their statements, and to end them.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anabranch_engine::{Backend, BackendState, Interrupt};

/// What a client is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It waits for a message, outside a transaction.
    Idle = 0,
    /// It waits for a message, inside a transaction.
    InTransaction = 1,
    /// A statement runs, or an answer is sent.
    Busy = 2,
}

/// A connected client.
pub(crate) struct Peer {
    /// The number by which the client cancels.
    pub id: i32,
    /// Proves that it is the client who cancels.
    pub secret: i32,
    activity: AtomicU8,
    interrupt: Mutex<Option<Interrupt>>,
    /// The client as others see it, once it has logged in.
    backend: OnceLock<Arc<Backend>>,
    is_terminated: AtomicBool,
    socket: Arc<TcpStream>,
}

impl Peer {
    /// Says what the client is doing.
    pub(crate) fn is_now(&self, activity: Activity) {
        self.activity.store(activity as u8, Ordering::SeqCst);
        self.is_shown(activity);
    }

    /// Says to other clients what this one is doing, before it is told that its answer is whole: it
    /// may ask them.
    pub(crate) fn is_shown(&self, activity: Activity) {
        if let Some(backend) = self.backend.get() {
            backend.is_now(match activity {
                Activity::Idle => BackendState::Idle,
                Activity::InTransaction => BackendState::InTransaction,
                Activity::Busy => BackendState::Active,
            });
        }
    }

    /// Says which text runs.
    pub(crate) fn runs(&self, text: &str) {
        self.backend.get().iter().for_each(|backend| backend.runs(text));
    }

    /// The client as others see it: they may end it.
    pub(crate) fn as_backend(self: &Arc<Peer>, interrupt: Interrupt) -> Arc<Backend> {
        let peer = Arc::downgrade(self);
        let end = move || {
            if let Some(peer) = peer.upgrade() {
                peer.terminate();
            }
        };
        let new = || Arc::new(Backend::new(self.id, self.socket.peer_addr().ok(), interrupt, end));
        Arc::clone(self.backend.get_or_init(new))
    }

    /// Ends the client: its statement is stopped, and no message of it is read any more.
    fn terminate(&self) {
        self.is_terminated.store(true, Ordering::SeqCst);
        self.interrupt();
        let _ = self.socket.shutdown(Shutdown::Read);
    }

    /// Whether another client has ended this one.
    pub(crate) fn is_terminated(&self) -> bool {
        self.is_terminated.load(Ordering::SeqCst)
    }

    /// What stops the client's statement, once it has logged in.
    pub(crate) fn stopped_by(&self, interrupt: Interrupt) {
        *self.interrupt.lock().unwrap_or_else(PoisonError::into_inner) = Some(interrupt);
    }

    /// Ends the wait of a subscription, which then sees that the server ends.
    fn look_around(&self) {
        if let Some(interrupt) = &*self.interrupt.lock().unwrap_or_else(PoisonError::into_inner) {
            interrupt.wake();
        }
    }

    fn interrupt(&self) {
        if let Some(interrupt) = &*self.interrupt.lock().unwrap_or_else(PoisonError::into_inner) {
            interrupt.trigger();
        }
    }
}

/// All connected clients.
#[derive(Default)]
pub(crate) struct Peers {
    peers: Mutex<HashMap<i32, Arc<Peer>>>,
    last_id: AtomicI32,
    is_ending: AtomicBool,
}

impl Peers {
    /// Takes a client in, unless there are `n_max` already or the server ends.
    pub(crate) fn enter(&self, socket: &Arc<TcpStream>, secret: i32, n_max: usize) -> Option<Arc<Peer>> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.len() >= n_max || self.is_ending() {
            return None;
        }
        let mut id = self.next_id();
        while peers.contains_key(&id) {
            id = self.next_id();
        }
        let peer = Arc::new(Peer {
            id,
            secret,
            activity: AtomicU8::new(Activity::Idle as u8),
            interrupt: Mutex::default(),
            backend: OnceLock::new(),
            is_terminated: AtomicBool::new(false),
            socket: Arc::clone(socket),
        });
        peers.insert(id, Arc::clone(&peer));
        Some(peer)
    }

    fn next_id(&self) -> i32 {
        self.last_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Forgets a client.
    pub(crate) fn leave(&self, peer: &Peer) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).remove(&peer.id);
    }

    /// Stops the statement of a client; a wrong secret stops nothing.
    pub(crate) fn cancel(&self, id: i32, secret: i32) {
        let peer = self.peers.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some(peer) = peer.filter(|peer| peer.secret == secret) {
            peer.interrupt();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether the server ends.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// Takes no client in any more, and wakes those who are idle: they hear why and are gone.
    pub(crate) fn begin_end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        for peer in self.peers.lock().unwrap_or_else(PoisonError::into_inner).values() {
            peer.look_around();
        }
        self.wake(|activity| activity == Activity::Idle as u8);
    }

    /// Ends those who are still there: their statements are interrupted.
    pub(crate) fn end(&self) {
        for peer in self.peers.lock().unwrap_or_else(PoisonError::into_inner).values() {
            peer.interrupt();
        }
        self.wake(|_| true);
    }

    /// Cuts those off who take nothing.
    pub(crate) fn cut(&self) {
        for peer in self.peers.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let _ = peer.socket.shutdown(Shutdown::Both);
        }
    }

    /// Stops the statements of clients that have gone: none is there for the answer.
    pub(crate) fn stop_those_gone(&self) {
        let busy = |peer: &&Arc<Peer>| peer.activity.load(Ordering::SeqCst) == Activity::Busy as u8;
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.values().filter(busy).filter(|peer| has_gone(&peer.socket)).for_each(|peer| peer.interrupt());
    }

    fn wake(&self, which: impl Fn(u8) -> bool) {
        for peer in self.peers.lock().unwrap_or_else(PoisonError::into_inner).values() {
            if which(peer.activity.load(Ordering::SeqCst)) {
                // (A socket that is closed needs no waking.)
                let _ = peer.socket.shutdown(Shutdown::Read);
            }
        }
    }
}

/// Whether the other side has closed, also with bytes of its before that were not read.
#[cfg(target_os = "linux")]
fn has_gone(socket: &TcpStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut watched = [PollFd::new(socket, PollFlags::RDHUP)];
    // (Who cannot be asked is taken to be there: the answer cannot be sent then.)
    poll(&mut watched, Some(&Timespec::default())).is_ok_and(|n_ready| n_ready > 0)
}

/// Elsewhere a client is seen to have gone when an answer is sent.
#[cfg(not(target_os = "linux"))]
fn has_gone(_: &TcpStream) -> bool {
    false
}
