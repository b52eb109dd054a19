//! COPY of a connection: rows are read and written on its thread, and committed by the engine.

use std::sync::PoisonError;
use std::time::Duration;

use super::Connection;
use crate::contained::contained;
use crate::copy::decode::Block;
use crate::error::{Error, ErrorKind};
use crate::session::{CopyIn, CopyRows, Copying, NextRows, Outcome, no_copy};

impl Connection {
    /// Takes bytes of a COPY .. FROM STDIN, however they are cut. They are read on this thread. An
    /// error ends the COPY.
    ///
    /// # Errors
    /// As [`Session::copy_data`](crate::Session::copy_data).
    pub fn copy_data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let result = self.send_data(bytes);
        self.failing(result)
    }

    fn send_data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut copy = self.take_copy_in()?;
        self.interrupt.check()?;
        for block in copy.decoder.push(bytes)? {
            copy = self.set_aside(copy, block)?;
        }
        self.client.lock().unwrap_or_else(PoisonError::into_inner).copying = Some(Copying::In(copy));
        Ok(())
    }

    /// All rows of a COPY .. FROM STDIN were sent: they are committed, or none of them.
    ///
    /// # Errors
    /// As [`Session::copy_done`](crate::Session::copy_done).
    pub fn copy_done(&mut self) -> Result<Outcome, Error> {
        let result = self.end_data();
        self.failing(result)
    }

    fn end_data(&mut self) -> Result<Outcome, Error> {
        let mut copy = self.take_copy_in()?;
        if let Some(block) = copy.decoder.finish()? {
            copy = self.set_aside(copy, block)?;
        }
        self.call(move |session| session.commit_copied(copy))?
    }

    /// The next rows of a COPY .. TO STDOUT, written on this thread; waits for changes up to
    /// `timeout`.
    ///
    /// # Errors
    /// As [`Session::copy_rows`](crate::Session::copy_rows).
    pub fn copy_rows(&mut self, timeout: Duration) -> Result<CopyRows, Error> {
        let copying = self.client.lock().unwrap_or_else(PoisonError::into_inner).copying.take();
        let Some(Copying::Out(mut copy)) = copying else { return Err(no_copy()) };
        let rows = match contained("writing rows", || copy.next())? {
            NextRows::Given(rows) => rows,
            NextRows::Wants(subscription) => match self.next_changes(&subscription, timeout) {
                Ok(changes) => copy.take(&changes)?,
                Err(error) => {
                    self.unsubscribe(subscription);
                    return Err(error);
                }
            },
        };
        self.client.lock().unwrap_or_else(PoisonError::into_inner).copying = Some(Copying::Out(copy));
        if matches!(rows, CopyRows::Done { .. }) {
            self.copy_stop();
        }
        Ok(rows)
    }

    /// Ends a COPY before its end: nothing that was sent takes effect.
    pub fn copy_stop(&mut self) {
        // (A closed engine holds nothing.)
        let _ = self.call(|session| session.copy_stop());
    }

    /// A COPY .. FROM STDIN is given up by the client: its error, which also fails the transaction.
    pub fn copy_fail(&mut self, reason: &str) -> Error {
        self.copy_stop();
        let error = Error::new(ErrorKind::Cancelled, format!("COPY from stdin failed: {reason}"));
        match self.failing::<()>(Err(error.clone())) {
            Err(error) => error,
            Ok(()) => error,
        }
    }

    fn take_copy_in(&self) -> Result<Box<CopyIn>, Error> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        match client.copying.take() {
            Some(Copying::In(copy)) => Ok(copy),
            other => {
                client.copying = other;
                Err(no_copy())
            }
        }
    }

    /// Has the engine check rows and set them aside.
    fn set_aside(&self, mut copy: Box<CopyIn>, block: Block) -> Result<Box<CopyIn>, Error> {
        let (block, batch) = copy.decoder.typed(block)?;
        self.call(move |session| {
            session.set_aside(&mut copy, &block, batch)?;
            Ok(copy)
        })?
    }
}
