//! The bytes of one client, in and out, with limits of size and time.
//!
//! Memory: what has come of a message, and a buffer of some kilobytes; an idle client keeps little
//! more than one page.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::message::{Message, parse};

/// Bytes asked for at once.
const CHUNK_BYTES: usize = 8 << 10;
/// Bytes of answers that are held back, about.
const OUT_BYTES: usize = 32 << 10;
/// Bytes that an idle client's buffers keep.
const KEPT_BYTES: usize = 4 << 10;

/// Why nothing more comes from a client.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It has gone, with or without a word.
    Closed,
    /// It did nothing for too long.
    Idle,
    /// It began a message and did not end it in time, or took no bytes.
    Slow,
    /// A message of this length, which is more than allowed.
    TooLong(usize),
    /// Bytes that are no message.
    NoMessage(&'static str),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Broken::Slow,
            _ => Broken::Closed,
        }
    }
}

/// A socket that others may shut down meanwhile.
pub(crate) struct Socket(Arc<TcpStream>);

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(bytes)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Stream {
    Plain(Socket),
    Encrypted(Box<StreamOwned<ServerConnection, Socket>>),
}

/// A message that came, or why it cannot be understood; its bytes are gone either way.
pub(crate) type Came = Result<Message, &'static str>;

/// The bytes of one client.
pub(crate) struct Frames {
    stream: Stream,
    socket: Arc<TcpStream>,
    /// What came and was not taken.
    input: Vec<u8>,
    /// Bytes of `input` that were taken.
    taken: usize,
    /// What is to be sent.
    pub out: Vec<u8>,
    /// How often something was sent.
    n_sent: u64,
    message_bytes_max: usize,
    message_time: Duration,
    /// What the socket's reads wait at most, as it is set.
    read_timeout: Option<Duration>,
}

impl Frames {
    pub(crate) fn new(
        socket: Arc<TcpStream>,
        message_bytes_max: usize,
        message_time: Duration,
        write_time: Duration,
    ) -> io::Result<Frames> {
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(write_time.max(Duration::from_millis(1))))?;
        socket.set_read_timeout(None)?;
        Ok(Frames {
            stream: Stream::Plain(Socket(Arc::clone(&socket))),
            socket,
            input: vec![],
            taken: 0,
            out: vec![],
            n_sent: 0,
            message_bytes_max,
            message_time,
            read_timeout: None,
        })
    }

    /// Goes on encrypted.
    ///
    /// Bytes that came before are an error: their sender could have been another.
    pub(crate) fn encrypt(&mut self, config: &Arc<ServerConfig>) -> Result<(), Broken> {
        if self.taken < self.input.len() {
            return Err(Broken::NoMessage("unencrypted bytes after the request for encryption"));
        }
        let connection = ServerConnection::new(Arc::clone(config)).map_err(|_| Broken::Closed)?;
        let stream = StreamOwned::new(connection, Socket(Arc::clone(&self.socket)));
        self.stream = Stream::Encrypted(Box::new(stream));
        Ok(())
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.stream, Stream::Encrypted(_))
    }

    /// The first message of a connection, which has no letter: what follows its length.
    pub(crate) fn first(&mut self, deadline: Instant) -> Result<Vec<u8>, Broken> {
        const FIRST_BYTES_MAX: usize = 10_000;
        self.wait_for(4, Some(deadline))?;
        let length = self.length_at(0)?;
        if length > FIRST_BYTES_MAX {
            return Err(Broken::NoMessage("the first message is too long"));
        }
        self.wait_for(length, Some(deadline))?;
        let body = self.input[self.taken + 4..self.taken + length].to_vec();
        self.take(length);
        Ok(body)
    }

    /// The next message, until a deadline.
    pub(crate) fn next_before(&mut self, deadline: Instant) -> Result<Came, Broken> {
        self.wait_for(5, Some(deadline))?;
        self.message(Some(deadline))
    }

    /// The next message. `idle` is how long the client may do nothing.
    pub(crate) fn next(&mut self, idle: Option<Duration>) -> Result<Came, Broken> {
        if self.waiting() == 0 {
            self.shrink();
            let deadline = idle.map(|idle| Instant::now() + idle);
            self.wait_for(1, deadline).map_err(|broken| match broken {
                Broken::Slow => Broken::Idle,
                other => other,
            })?;
        }
        let deadline = match self.has_message() {
            true => None,
            false => Some(Instant::now() + self.message_time),
        };
        self.wait_for(5, deadline)?;
        self.message(deadline)
    }

    fn message(&mut self, deadline: Option<Instant>) -> Result<Came, Broken> {
        let length = self.length_at(1)?;
        if length > self.message_bytes_max {
            return Err(Broken::TooLong(length));
        }
        self.wait_for(length + 1, deadline)?;
        let message = &self.input[self.taken..self.taken + length + 1];
        let came = parse(message[0], &message[5..]);
        self.take(length + 1);
        Ok(came)
    }

    /// Whether a whole message has come.
    pub(crate) fn has_message(&self) -> bool {
        self.waiting() >= 5 && self.length_at(1).is_ok_and(|length| self.waiting() > length)
    }

    /// Whether the message that comes next has begun to come, and is of this kind.
    pub(crate) fn is_next(&self, kind: u8) -> bool {
        self.input.get(self.taken) == Some(&kind)
    }

    /// How often something was sent.
    pub(crate) fn n_sent(&self) -> u64 {
        self.n_sent
    }

    /// Looks whether something comes, for a moment: whether the client is still there.
    pub(crate) fn is_there(&mut self) -> bool {
        if self.waiting() > 0 {
            // (It has sent something that is for later; only its goodbye is for now.)
            return self.input[self.taken] != b'X';
        }
        match self.fill(Some(Duration::from_millis(1))) {
            Ok(()) => self.input[self.taken] != b'X',
            Err(Broken::Slow) => true,
            Err(_) => false,
        }
    }

    fn waiting(&self) -> usize {
        self.input.len() - self.taken
    }

    fn length_at(&self, offset: usize) -> Result<usize, Broken> {
        let at = self.taken + offset;
        let bytes = self.input[at..at + 4].try_into().expect("four bytes were waited for");
        match usize::try_from(i32::from_be_bytes(bytes)) {
            Ok(length) if length >= 4 => Ok(length),
            _ => Err(Broken::NoMessage("a length that cannot be")),
        }
    }

    fn take(&mut self, n_bytes: usize) {
        self.taken += n_bytes;
        if self.taken == self.input.len() {
            self.input.clear();
            self.taken = 0;
        }
    }

    /// Reads until so many bytes are there.
    fn wait_for(&mut self, n_bytes: usize, deadline: Option<Instant>) -> Result<(), Broken> {
        while self.waiting() < n_bytes {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Broken::Slow);
            }
            self.fill(left)?;
        }
        Ok(())
    }

    /// Reads what is there, at least a byte.
    fn fill(&mut self, timeout: Option<Duration>) -> Result<(), Broken> {
        if self.read_timeout != timeout {
            self.socket.set_read_timeout(timeout.map(|time| time.max(Duration::from_millis(1))))?;
            self.read_timeout = timeout;
        }
        if self.taken > 0 {
            self.input.drain(..self.taken);
            self.taken = 0;
        }
        let start = self.input.len();
        self.input.resize(start + CHUNK_BYTES, 0);
        let read = loop {
            let free = &mut self.input[start..];
            let read = match &mut self.stream {
                Stream::Plain(socket) => socket.read(free),
                Stream::Encrypted(stream) => stream.read(free),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.input.truncate(start + *read.as_ref().unwrap_or(&0));
        match read? {
            0 => Err(Broken::Closed),
            _ => Ok(()),
        }
    }

    /// Sends what is held back, if it is much.
    pub(crate) fn flush_if_large(&mut self) -> Result<(), Broken> {
        if self.out.len() >= OUT_BYTES { self.flush() } else { Ok(()) }
    }

    /// Sends what is held back.
    pub(crate) fn flush(&mut self) -> Result<(), Broken> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.n_sent += 1;
        let sent = match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(&self.out),
            Stream::Encrypted(stream) => stream.write_all(&self.out).and_then(|()| stream.flush()),
        };
        self.out.clear();
        Ok(sent?)
    }

    /// The last bytes: what is held back, and the end of encryption.
    pub(crate) fn close(&mut self) {
        // (A client that is gone, or takes nothing, hears nothing.)
        let _ = self.flush();
        if let Stream::Encrypted(stream) = &mut self.stream {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    }

    /// Gives memory back that an idle client does not need.
    fn shrink(&mut self) {
        for buffer in [&mut self.input, &mut self.out] {
            if buffer.capacity() > KEPT_BYTES && buffer.is_empty() {
                *buffer = Vec::new();
            }
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.close();
    }
}
