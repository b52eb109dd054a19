//! Several processes of one run: connections between them, and the frames that cross there.
//!
//! Each process builds the same program, of a layout of as many processes, and connects to the
//! others. Process 0 is the client's ([`Shards::run_in`](crate::Shards::run_in)); the others work
//! until the client's run is dropped ([`Shards::serve_in`](crate::Shards::serve_in)). No memory is
//! shared: rows cross in the wire form of batches.
//!
//! Trust: a process that reaches the port takes part. Ports are to be open to the run's machines
//! only.
//!
//! `frame` (what crosses), `link` (threads of a connection).

pub(crate) mod frame;
pub(crate) mod link;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anabranch_engine::Error;

/// First bytes of a connection: name and version of the frames.
const MAGIC: u64 = u64::from_le_bytes(*b"anashrd1");

/// How long a process waits for another one to come up.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a process waits before it knocks again.
const PAUSE: Duration = Duration::from_millis(20);

/// Connections of a process to all others.
pub struct Processes {
    /// Number of this process; 0 is the client's.
    pub(crate) process: usize,
    /// To each process; none to itself.
    pub(crate) streams: Vec<Option<TcpStream>>,
}

impl Processes {
    /// Connects process `process` to all others, which listen at these addresses, by number.
    ///
    /// # Errors
    /// `Invalid` when there is no such process; `Unavailable` when one does not answer within 30
    /// seconds, or something else answers.
    pub fn connect(process: usize, addresses: &[SocketAddr]) -> Result<Processes, Error> {
        let Some(address) = addresses.get(process) else {
            return Err(Error::invalid(format!("there is no process {process}: there are {}", addresses.len())));
        };
        let listener = TcpListener::bind(address)
            .map_err(|error| Error::unavailable(format!("process {process} cannot listen at {address}: {error}")))?;
        Processes::connect_with(process, &listener, addresses)
    }

    /// As [`connect`](Processes::connect), with a listener that is bound already. A process
    /// listens to those of higher numbers, and connects to those of lower ones.
    ///
    /// # Errors
    /// As for `connect`.
    pub fn connect_with(process: usize, listener: &TcpListener, addresses: &[SocketAddr]) -> Result<Processes, Error> {
        let patience = Instant::now() + PATIENCE;
        let mut streams: Vec<Option<TcpStream>> = addresses.iter().map(|_| None).collect();
        for (other, address) in addresses.iter().enumerate().take(process) {
            streams[other] = Some(knock(process, other, *address, patience)?);
        }
        while let Some(missing) = (process + 1..addresses.len()).find(|other| streams[*other].is_none()) {
            let (other, stream) = admit(listener, missing, patience)?;
            match streams.get_mut(other) {
                Some(place) if other > process && place.is_none() => *place = Some(stream),
                _ => return Err(Error::unavailable(format!("process {other} connects, which is not expected"))),
            }
        }
        Ok(Processes { process, streams })
    }
}

/// Connects to a process, as soon as it listens.
fn knock(process: usize, other: usize, address: SocketAddr, patience: Instant) -> Result<TcpStream, Error> {
    loop {
        match TcpStream::connect(address) {
            // (A socket that knocks at a port of its own range, before a process listens there, may
            // be connected to itself.)
            Ok(stream) if stream.local_addr().is_ok_and(|own| own == address) => sleep(PAUSE),
            Ok(mut stream) => {
                let hello = [MAGIC, process as u64].map(u64::to_le_bytes).concat();
                let sent = stream.set_nodelay(true).and_then(|()| stream.write_all(&hello));
                return sent.map(|()| stream).map_err(|error| silent(other, &error));
            }
            Err(error) if Instant::now() > patience => return Err(silent(other, &error)),
            Err(_) => sleep(PAUSE),
        }
    }
}

/// Waits for a process to connect, and returns its number.
fn admit(listener: &TcpListener, missing: usize, patience: Instant) -> Result<(usize, TcpStream), Error> {
    listener.set_nonblocking(true).map_err(|error| silent(missing, &error))?;
    loop {
        match listener.accept() {
            Ok((mut stream, _)) => {
                let mut hello = [0; 2 * size_of::<u64>()];
                let heard = stream
                    .set_nonblocking(false)
                    .and_then(|()| stream.set_nodelay(true))
                    .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
                    .and_then(|()| stream.read_exact(&mut hello))
                    .and_then(|()| stream.set_read_timeout(None));
                heard.map_err(|error| silent(missing, &error))?;
                let words = hello.as_chunks::<8>().0;
                if u64::from_le_bytes(words[0]) != MAGIC {
                    return Err(Error::unavailable("something that is no process of a sharded run connects"));
                }
                return Ok((u64::from_le_bytes(words[1]) as usize, stream));
            }
            Err(error) if Instant::now() > patience => return Err(silent(missing, &error)),
            Err(_) => sleep(PAUSE),
        }
    }
}

fn silent(process: usize, error: &std::io::Error) -> Error {
    Error::unavailable(format!("process {process} does not answer: {error}"))
        .with_hint("Start all processes of the run, with one list of addresses.")
}
