//! COPY: rows in messages of their own, both ways.
//!
//! The same in both protocols. What a client still sends after an error is passed over by the loop
//! of messages.

use std::time::Duration;

use anabranch_engine::{CopyRows, CopyStart, CopyWay, Error, Outcome};

use super::ServerClient;
use crate::wire::frames::Broken;
use crate::wire::message::Message;
use crate::wire::reply;

/// How long a copy of changes waits before it looks whether its client is still there.
const CHANGES_WAIT: Duration = Duration::from_millis(250);

impl ServerClient<'_> {
    /// Goes through a COPY that has begun; gives its command tag.
    pub(super) fn copy(&mut self, start: CopyStart) -> Result<Result<String, Error>, Broken> {
        let letter = if start.way == CopyWay::In { b'G' } else { b'H' };
        reply::message(&mut self.frames.out, letter, |body| {
            body.push(u8::from(start.is_binary));
            body.extend_from_slice(&(start.n_columns as i16).to_be_bytes());
            (0..start.n_columns).for_each(|_| body.extend_from_slice(&i16::from(start.is_binary).to_be_bytes()));
        });
        match start.way {
            CopyWay::In => self.copy_in(),
            CopyWay::Out => self.copy_out(),
        }
    }

    fn copy_in(&mut self) -> Result<Result<String, Error>, Broken> {
        self.frames.flush()?;
        loop {
            let error = match self.frames.next(self.shared.limits.idle())? {
                Ok(Message::CopyData(bytes)) => match self.connection.copy_data(&bytes) {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Ok(Message::CopyDone) => match self.connection.copy_done() {
                    Ok(Outcome::Done { tag, .. }) => return Ok(Ok(tag)),
                    Ok(_) => Error::internal("COPY gives no rows"),
                    Err(error) => error,
                },
                Ok(Message::CopyFail(reason)) => self.connection.copy_fail(&reason),
                Ok(Message::Flush | Message::Sync) => continue,
                Ok(Message::Terminate) => {
                    self.connection.copy_stop();
                    return Err(Broken::Closed);
                }
                Ok(_) => {
                    self.connection.copy_stop();
                    Error::invalid("unexpected message during COPY from stdin").with_sqlstate("08P01")
                }
                Err(what) => {
                    self.connection.copy_stop();
                    Error::invalid(what).with_sqlstate("08P01")
                }
            };
            return Ok(Err(error));
        }
    }

    fn copy_out(&mut self) -> Result<Result<String, Error>, Broken> {
        loop {
            match self.connection.copy_rows(CHANGES_WAIT) {
                Ok(CopyRows::Data(data)) => {
                    let mut from = 0;
                    for end in data.row_ends {
                        let row = &data.bytes[from..end];
                        reply::message(&mut self.frames.out, b'd', |body| body.extend_from_slice(row));
                        from = end;
                        self.frames.flush_if_large()?;
                    }
                }
                Ok(CopyRows::Nothing) => {
                    if self.shared.peers.is_ending() || !self.frames.is_there() {
                        self.connection.copy_stop();
                        return Err(Broken::Closed);
                    }
                    self.frames.flush()?;
                }
                Ok(CopyRows::Done { tag }) => {
                    reply::bare(&mut self.frames.out, b'c');
                    return Ok(Ok(tag));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
    }
}
