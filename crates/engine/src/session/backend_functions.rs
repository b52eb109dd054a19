//! `pg_backend_pid`, `pg_cancel_backend`, `pg_terminate_backend`: clients as functions see them.
//!
//! Law: a client that is cancelled or ended is so at once, whatever becomes of the statement that
//! asked. A client that may only read ends those of its own user. Views have none of these
//! functions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::backends::{Backend, Backends};

/// A client, and all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientBackends {
    pub own: Option<Arc<Backend>>,
    pub all: Backends,
    /// The client may only read: it ends clients of its own user alone.
    pub only_own_user: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum BackendCall {
    /// The number of the client that asks.
    Own,
    Cancel,
    Terminate,
}

const CALLS: [(&str, BackendCall); 3] = [
    ("pg_backend_pid", BackendCall::Own),
    ("pg_cancel_backend", BackendCall::Cancel),
    ("pg_terminate_backend", BackendCall::Terminate),
];

struct BackendFunction {
    name: &'static str,
    call: BackendCall,
    backends: ClientBackends,
    signature: Signature,
}

impl ClientBackends {
    fn may_end(&self, pid: i64) -> bool {
        let user = |backend: &Arc<Backend>| backend.seen().user;
        !self.only_own_user || self.all.find(pid).is_none_or(|other| self.own.as_ref().map(user) == Some(user(&other)))
    }

    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let (name, call) = *CALLS.iter().find(|(known, _)| *known == name)?;
        let types = match call {
            BackendCall::Own => TypeSignature::Nullary,
            BackendCall::Cancel => TypeSignature::Uniform(1, vec![DataType::Int64]),
            BackendCall::Terminate => TypeSignature::OneOf(vec![
                TypeSignature::Uniform(1, vec![DataType::Int64]),
                TypeSignature::Uniform(2, vec![DataType::Int64]),
            ]),
        };
        let volatility = if call == BackendCall::Own { Volatility::Stable } else { Volatility::Volatile };
        let signature = Signature::new(types, volatility);
        Some(Arc::new(ScalarUDF::from(BackendFunction { name, call, backends: self.clone(), signature })))
    }
}

impl ScalarUDFImpl for BackendFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> DfResult<DataType> {
        Ok(if self.call == BackendCall::Own { DataType::Int32 } else { DataType::Boolean })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        if self.call == BackendCall::Own {
            let pid = self.backends.own.as_ref().map_or(std::process::id() as i32, |own| own.pid);
            let column: ArrayRef = Arc::new(Int32Array::from(vec![pid; args.number_rows]));
            return Ok(ColumnarValue::Array(column));
        }
        let pids = args.args[0].to_array(args.number_rows)?;
        let pids = pids.as_primitive::<Int64Type>();
        if let Some(pid) = pids.iter().flatten().find(|pid| !self.backends.may_end(*pid)) {
            return exec_err!("permission denied to end client {pid}, which is another user's");
        }
        let answer = |row: usize| {
            pids.is_valid(row).then(|| match self.call {
                BackendCall::Terminate => self.backends.all.terminate(pids.value(row)),
                _ => self.backends.all.cancel(pids.value(row)),
            })
        };
        let answers: BooleanArray = (0..pids.len()).map(answer).collect();
        Ok(ColumnarValue::Array(Arc::new(answers)))
    }
}

impl fmt::Debug for BackendFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BackendFunction").field(&self.call).finish()
    }
}

impl PartialEq for BackendFunction {
    fn eq(&self, other: &BackendFunction) -> bool {
        let pid = |function: &BackendFunction| function.backends.own.as_ref().map(|own| own.pid);
        self.call == other.call && pid(self) == pid(other)
    }
}

impl Eq for BackendFunction {}

impl Hash for BackendFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.call.hash(state);
    }
}
