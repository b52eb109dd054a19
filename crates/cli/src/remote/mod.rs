//! A server as the place where statements run.
//!
//! Law: requests run one after the other in the order they were made, on a thread that owns the
//! connection. A request's replies arrive in order and the last one is [`Reply::Finished`]. A
//! connection that is lost is opened anew by the next request.
//!
//! Reading order: [`address`], [`tls`], [`wire`] (messages), [`answers`] (rows), this file.

mod address;
mod answers;
mod tls;
mod wire;

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use anabranch_engine::Error;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend::{self, CopyData};

use crate::copy::Transfer;
use crate::data::{PIECES_MAX, Piece, Wanted};
use crate::reply::{Done, Reply};
use crate::terminal::typed;
use address::{Address, Defaults};
use answers::{Answer, Told};
use wire::{Key, Wire, cancel, told};

/// Bytes of a COPY in one message.
const COPY_BYTES: usize = 1 << 16;

/// See the module. Dropping it ends the connection.
pub(crate) struct Remote {
    requests: Sender<Request>,
    address: Arc<Address>,
    key: Arc<Mutex<Key>>,
}

struct Request {
    text: Arc<str>,
    transfer: Transfer,
    replies: Sender<Reply>,
}

/// The thread that owns the connection.
struct Served {
    address: Arc<Address>,
    key: Arc<Mutex<Key>>,
    wire: Option<Wire>,
}

impl Remote {
    /// Connects; asks for a password at the terminal if one is needed and the address has none.
    ///
    /// # Errors
    /// `Invalid` for a wrong address, `Unavailable` when the server does not answer or lets no
    /// client in.
    pub(crate) fn connect(url: &str) -> Result<Remote, Error> {
        let mut address = Address::parse(url, Defaults::of_environment())?;
        let asked = Mutex::new(None);
        let user = address.user.clone();
        let ask = || {
            let password = typed(&format!("Password of {user}: "))?;
            *asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(password.clone());
            Ok(password)
        };
        let wire = Wire::connect(&address, &ask)?;
        address.password = asked.into_inner().unwrap_or_else(PoisonError::into_inner).or(address.password);
        let (address, key) = (Arc::new(address), Arc::new(Mutex::new(wire.key)));
        let (requests, inbox) = channel();
        let mut served = Served { address: Arc::clone(&address), key: Arc::clone(&key), wire: Some(wire) };
        Builder::new()
            .name("connection".into())
            .spawn(move || served.serve(&inbox))
            .map_err(|error| Error::unavailable(format!("cannot start a thread: {error}")))?;
        Ok(Remote { requests, address, key })
    }

    /// Starts a statement. Dropping the receiver ends a subscription; others run to their end.
    ///
    /// # Errors
    /// `Internal` when the connection's thread has stopped.
    pub(crate) fn begin(&self, text: Arc<str>, transfer: Transfer) -> Result<Receiver<Reply>, Error> {
        let (replies, receiver) = channel();
        let request = Request { text, transfer, replies };
        self.requests.send(request).map_err(|_| Error::internal("the connection's thread has stopped"))?;
        Ok(receiver)
    }

    /// What asks the server to stop the running statement.
    pub(crate) fn stopper(&self) -> Box<dyn Fn() + Send> {
        let (address, key) = (Arc::clone(&self.address), Arc::clone(&self.key));
        Box::new(move || cancel(&address, *key.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// In words, for people.
    pub(crate) fn told(&self) -> String {
        self.address.shown()
    }
}

impl Served {
    fn serve(&mut self, inbox: &Receiver<Request>) {
        while let Ok(Request { text, transfer, replies }) = inbox.recv() {
            let result = self.run(&text, transfer, &replies);
            // (Who asked may have gone.)
            let _ = replies.send(Reply::Finished(result));
        }
        if let Some(wire) = &mut self.wire {
            // (A server that is gone needs no goodbye.)
            let _ = wire.send(|out| {
                frontend::terminate(out);
                Ok(())
            });
        }
    }

    /// Runs a statement, on a new connection if the last one is lost.
    fn run(&mut self, text: &str, transfer: Transfer, replies: &Sender<Reply>) -> Result<Option<Done>, Error> {
        if self.wire.is_none() {
            let no_password = || Err(Error::unavailable("the server asks for a password now"));
            let wire = Wire::connect(&self.address, &no_password)?;
            *self.key.lock().unwrap_or_else(PoisonError::into_inner) = wire.key;
            self.wire = Some(wire);
        }
        let Some(wire) = &mut self.wire else { return Err(Error::internal("there is no connection")) };
        let mut running =
            Running { text, transfer, replies, is_listening: true, answer: None, done: None, error: None };
        let result =
            running.run(wire, &|| cancel(&self.address, *self.key.lock().unwrap_or_else(PoisonError::into_inner)));
        if result.is_err() {
            self.wire = None;
        }
        result?;
        match running.error {
            Some(error) => Err(error),
            None => Ok(running.done),
        }
    }
}

/// A statement between its text and ReadyForQuery.
struct Running<'a> {
    text: &'a str,
    transfer: Transfer,
    replies: &'a Sender<Reply>,
    /// Whether the receiver of the replies is still there.
    is_listening: bool,
    answer: Option<Answer>,
    done: Option<Done>,
    error: Option<Error>,
}

impl Running<'_> {
    /// The outer error is that of the connection.
    fn run(&mut self, wire: &mut Wire, cancel: &dyn Fn()) -> Result<(), Error> {
        let text = self.text;
        wire.send(|out| frontend::query(text, out))?;
        let is_subscription = text.trim_start().get(..9).is_some_and(|word| word.eq_ignore_ascii_case("SUBSCRIBE"));
        let mut is_cancelled = false;
        loop {
            match wire.next()? {
                Message::RowDescription(body) => {
                    let answer = Answer::new(&body)?;
                    if is_subscription {
                        self.reply(Reply::Subscribed(answer.changes_schema()));
                    }
                    self.answer = Some(answer);
                }
                Message::DataRow(row) => {
                    if let Some(answer) = &mut self.answer {
                        answer.push(&row)?;
                    }
                    if is_subscription && !wire.has_more() {
                        self.tell_changes()?;
                        if !self.is_listening && !std::mem::replace(&mut is_cancelled, true) {
                            cancel();
                        }
                    }
                }
                Message::CommandComplete(body) => {
                    let tag = body.tag().map_err(|error| Error::unavailable(error.to_string()))?.to_owned();
                    self.complete(tag, is_subscription)?;
                }
                Message::NoticeResponse(body) => self.notice(told(body.fields(), text).message),
                Message::ErrorResponse(body) => self.error = Some(told(body.fields(), text)),
                Message::CopyInResponse(body) => self.send_copy(wire, body.format() == 1)?,
                Message::CopyData(body) => self.take_copy(body.data()),
                Message::ReadyForQuery(_) => return Ok(()),
                _ => {}
            }
        }
    }

    fn reply(&mut self, reply: Reply) {
        self.is_listening &= self.replies.send(reply).is_ok();
    }

    fn tell_changes(&mut self) -> Result<(), Error> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        for told in answer.take_told()? {
            self.reply(match told {
                Told::Changes(batch) => Reply::Changes(batch),
                Told::Complete(time) => Reply::Complete(time),
            });
        }
        Ok(())
    }

    fn complete(&mut self, tag: String, is_subscription: bool) -> Result<(), Error> {
        if is_subscription {
            self.tell_changes()?;
            self.answer = None;
            return Ok(());
        }
        match self.answer.take() {
            Some(answer) => self.reply(Reply::Rows(answer.rows()?)),
            None => {
                let detail = self.done.take().and_then(|done| done.detail);
                self.done = Some(Done { tag, detail });
            }
        }
        Ok(())
    }

    /// A notice belongs to the rows that come, or to what was done.
    fn notice(&mut self, text: String) {
        match &mut self.answer {
            Some(answer) => answer.notices.push(text),
            None => self.done = Some(Done { tag: String::new(), detail: Some(text) }),
        }
    }

    /// Sends what a COPY reads.
    fn send_copy(&mut self, wire: &mut Wire, is_binary: bool) -> Result<(), Error> {
        let Transfer::From(source) = &mut self.transfer else { return self.send_typed(wire, is_binary) };
        let mut chunk = vec![0; COPY_BYTES];
        loop {
            match source.read(&mut chunk) {
                Ok(0) => {
                    return wire.send(|out| {
                        frontend::copy_done(out);
                        Ok(())
                    });
                }
                Ok(n) => wire.send(|out| CopyData::new(&chunk[..n]).map(|data| data.write(out)))?,
                Err(problem) => return wire.send(|out| frontend::copy_fail(&format!("cannot read: {problem}"), out)),
            }
        }
    }

    /// Sends rows that come from where the statement was typed.
    fn send_typed(&mut self, wire: &mut Wire, is_binary: bool) -> Result<(), Error> {
        let (pieces, typed) = sync_channel(PIECES_MAX);
        self.reply(Reply::Wants(Wanted { pieces, is_binary }));
        loop {
            match typed.recv() {
                Ok(Piece::Rows(rows)) => wire.send(|out| CopyData::new(&rows[..]).map(|data| data.write(out)))?,
                Ok(Piece::Done) => {
                    return wire.send(|out| {
                        frontend::copy_done(out);
                        Ok(())
                    });
                }
                Err(_) => return wire.send(|out| frontend::copy_fail("canceled by user", out)),
            }
        }
    }

    /// Writes what a COPY gives.
    fn take_copy(&mut self, bytes: &[u8]) {
        let written = match &mut self.transfer {
            Transfer::To(target) => target.write_all(bytes),
            _ => std::io::stdout().write_all(bytes),
        };
        if let Err(problem) = written {
            self.error.get_or_insert_with(|| Error::unavailable(format!("cannot write: {problem}")));
        }
    }
}
