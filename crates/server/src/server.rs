//! The listener of PostgreSQL's protocol: a thread that takes clients in, and a thread for each.
//!
//! Half-open connections cost a thread until `limits.login_s` is over, or until the machine's
//! keep-alive finds that the other side is gone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anabranch_engine::Database;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use crate::config::Config;
use crate::error::ServerError;
use crate::metrics::Metrics;
use crate::peers::Peers;
use crate::session;
use crate::shared::ServerShared;
use crate::tls;
use crate::turns::Turns;

/// Stack of a client's thread. Pages that are not touched take no memory; deep queries are planned
/// on stacks of their own.
const STACK_BYTES: usize = 2 << 20;
/// Connections beyond the limit that may be told so at the same time, or that have not logged in.
const WAITING_MAX: usize = 256;
/// Connections that the system holds until they are accepted.
const BACKLOG: i32 = 1024;
/// A client that has said nothing for so long is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// How often the server looks for clients that have gone while their statements run.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// A running server. Dropping it ends it.
///
/// ```
/// use anabranch_engine::{Database, DatabaseOptions};
/// use anabranch_server::{Config, Server};
///
/// let database = Database::open(DatabaseOptions::default())?;
/// let config = Config { listen: "127.0.0.1:0".parse()?, ..Config::default() };
/// let server = Server::start(database, &config)?;
/// assert_ne!(server.address().port(), 0);
/// server.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    shared: Arc<ServerShared>,
    address: SocketAddr,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, and serves clients from now on.
    ///
    /// # Errors
    /// When the address is taken, when files of TLS cannot be used, or when others than this
    /// machine would be served without authentication.
    pub fn start(database: Database, config: &Config) -> Result<Server, ServerError> {
        let users = config.users()?;
        config.check_reach(&users)?;
        let tls = config.tls.as_ref().map(tls::load).transpose()?;
        let listener = listen(config.listen)?;
        let address = listener.local_addr().map_err(|error| ServerError::new(format!("no address: {error}")))?;
        let shared = Arc::new(ServerShared {
            database,
            users,
            limits: config.limits,
            tls,
            tls_is_required: config.tls.as_ref().is_some_and(|tls| tls.required),
            peers: Peers::default(),
            metrics: Metrics::new(),
            turns: Turns::default(),
            n_threads: AtomicUsize::new(0),
        });
        let its_shared = Arc::clone(&shared);
        let thread = Builder::new().name("anabranch-listen".into()).spawn(move || accept(&its_shared, &listener));
        let thread = thread.map_err(|error| ServerError::new(format!("cannot start a thread: {error}")))?;
        let its_shared = Arc::downgrade(&shared);
        // (Without it, a statement ends when its answer cannot be sent.)
        let _ = Builder::new().name("anabranch-watch".into()).spawn(move || watch(&its_shared));
        Ok(Server { shared, address, listener: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Clients that are connected.
    pub fn clients(&self) -> usize {
        self.shared.peers.count()
    }

    pub(crate) fn shared(&self) -> &Arc<ServerShared> {
        &self.shared
    }

    /// Ends the server: no client comes in, idle clients go, statements and transactions have
    /// `limits.drain_s` seconds, and what then still runs is interrupted.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        self.shared.peers.begin_end();
        wake(self.address);
        // (A panic of the listener has ended it, which is what was wanted.)
        let _ = listener.join();
        let drained = self.wait(Duration::from_secs(self.shared.limits.drain_s));
        if !drained {
            self.shared.peers.end();
            if !self.wait(Duration::from_secs(2)) {
                self.shared.peers.cut();
                self.wait(Duration::from_secs(1));
            }
        }
    }

    /// Waits until no client is there; whether that came to be.
    fn wait(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while self.shared.peers.count() > 0 {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Listens at an address.
fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
    let open = || -> std::io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    open().map_err(|error| {
        ServerError::new(format!("cannot listen on {address}: {error}"))
            .with_hint("Choose another address with --listen, for example --listen 127.0.0.1:6543.")
    })
}

/// Connects to the server itself, which ends its wait for a client.
fn wake(mut address: SocketAddr) {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
}

/// Takes clients in until the server ends.
fn accept(shared: &Arc<ServerShared>, listener: &TcpListener) {
    loop {
        let accepted = listener.accept();
        if shared.peers.is_ending() {
            return;
        }
        match accepted {
            Ok((socket, address)) => admit(shared, socket, address),
            Err(error) => {
                // (Too many open files, or a client that left at once: others wait meanwhile.)
                tracing::warn!("a connection could not be accepted: {error}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Looks for clients that have gone while their statements run, as long as there is a server.
fn watch(shared: &Weak<ServerShared>) {
    while let Some(shared) = shared.upgrade().filter(|shared| !shared.peers.is_ending()) {
        shared.peers.stop_those_gone();
        drop(shared);
        std::thread::sleep(WATCH_EVERY);
    }
}

/// Gives a client a thread.
fn admit(shared: &Arc<ServerShared>, socket: TcpStream, address: SocketAddr) {
    if shared.n_threads.fetch_add(1, Ordering::SeqCst) >= shared.limits.connections + WAITING_MAX {
        shared.n_threads.fetch_sub(1, Ordering::SeqCst);
        shared.metrics.refused.inc();
        return;
    }
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 6);
    // (Without keep-alive the client is served all the same.)
    let _ = SockRef::from(&socket).set_tcp_keepalive(&keepalive);
    let its_shared = Arc::clone(shared);
    let serve = move || {
        let _leaves = Leaves(&its_shared.n_threads);
        session::serve(&its_shared, Arc::new(socket), address);
    };
    let thread = Builder::new().name("anabranch-client".into()).stack_size(STACK_BYTES).spawn(serve);
    if let Err(error) = thread {
        shared.n_threads.fetch_sub(1, Ordering::SeqCst);
        shared.metrics.refused.inc();
        tracing::warn!("a client has no thread: {error}");
    }
}

/// Counts a thread out, also when it panics.
struct Leaves<'a>(&'a AtomicUsize);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
