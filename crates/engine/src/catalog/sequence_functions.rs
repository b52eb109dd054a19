//! `nextval`, `currval`, `setval`, `lastval`.
//!
//! A function is made for one planning, with the counters that there are then. It is volatile, so
//! no plan that is kept has it: the numbers that a client was given are those of the client that
//! plans.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::Int64Array;
use arrow::datatypes::DataType;
use datafusion_common::{Result as DfResult, ScalarValue, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::Catalog;
use super::sequence::{Counter, Given, name_in};

/// What is asked of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asked {
    Next,
    Current,
    Set,
    Last,
}

struct SequenceFunction {
    asked: Asked,
    signature: Signature,
    /// Counters by name.
    counters: BTreeMap<String, Arc<Counter>>,
    /// Names by the numbers that `regclass` gives.
    names: BTreeMap<u32, String>,
    given: Arc<Mutex<Given>>,
    moved: Arc<AtomicBool>,
}

/// The function of that name.
pub(super) fn find(name: &str, catalog: &Catalog, given: &Arc<Mutex<Given>>) -> Option<Arc<ScalarUDF>> {
    let asked = match name {
        "nextval" => Asked::Next,
        "currval" => Asked::Current,
        "setval" => Asked::Set,
        "lastval" => Asked::Last,
        _ => return None,
    };
    let signature = Signature::one_of(
        match asked {
            Asked::Last => vec![TypeSignature::Nullary],
            Asked::Next | Asked::Current => vec![TypeSignature::Any(1)],
            Asked::Set => vec![TypeSignature::Any(2), TypeSignature::Any(3)],
        },
        Volatility::Volatile,
    );
    Some(Arc::new(ScalarUDF::from(SequenceFunction {
        asked,
        signature,
        counters: catalog.counters().map(|(name, counter)| (name, Arc::clone(counter))).collect(),
        names: catalog.snapshot().sequence_names().collect(),
        given: Arc::clone(given),
        moved: Arc::clone(&catalog.moved),
    })))
}

impl SequenceFunction {
    /// The sequence that an argument means, and its counter.
    fn meant(&self, argument: &ScalarValue) -> Result<(&str, &Arc<Counter>), String> {
        let name = match argument {
            ScalarValue::UInt32(Some(oid)) => self.names.get(oid).cloned().unwrap_or_else(|| oid.to_string()),
            other => name_in(other.try_as_str().flatten().unwrap_or_default()),
        };
        match self.counters.get_key_value(&name) {
            Some((name, counter)) => Ok((name, counter)),
            None => Err(format!("sequence \"{name}\" does not exist")),
        }
    }

    fn answer(&self, args: &[ScalarValue]) -> Result<Option<i64>, String> {
        let given = || self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if args.iter().any(ScalarValue::is_null) {
            return Ok(None);
        }
        if self.asked == Asked::Last {
            return given().last().map(Some).ok_or_else(|| "lastval is not yet defined in this session".to_owned());
        }
        let (name, counter) = self.meant(&args[0])?;
        match self.asked {
            Asked::Current => given()
                .of(name)
                .map(Some)
                .ok_or_else(|| format!("currval of sequence \"{name}\" is not yet defined in this session")),
            Asked::Set => {
                let to = whole(&args[1]).ok_or_else(|| "setval takes a whole number".to_owned())?;
                let is_called = !matches!(args.get(2), Some(ScalarValue::Boolean(Some(false))));
                counter.restart(name, to, is_called)?;
                self.moved.store(true, Ordering::Release);
                if is_called {
                    given().set(name, to);
                }
                Ok(Some(to))
            }
            _ => {
                let number = counter.advance(name)?;
                self.moved.store(true, Ordering::Release);
                given().note(name, number);
                Ok(Some(number))
            }
        }
    }
}

fn whole(value: &ScalarValue) -> Option<i64> {
    match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(number) => number,
        _ => None,
    }
}

impl ScalarUDFImpl for SequenceFunction {
    fn name(&self) -> &str {
        match self.asked {
            Asked::Next => "nextval",
            Asked::Current => "currval",
            Asked::Set => "setval",
            Asked::Last => "lastval",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let n_rows = args.number_rows;
        let columns = args.args.iter().map(|arg| arg.to_array(n_rows)).collect::<DfResult<Vec<_>>>()?;
        let mut numbers = Vec::with_capacity(n_rows);
        for row in 0..n_rows {
            let values = columns.iter().map(|column| ScalarValue::try_from_array(column, row));
            match self.answer(&values.collect::<DfResult<Vec<_>>>()?) {
                Ok(number) => numbers.push(number),
                Err(problem) => return exec_err!("{problem}"),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(Int64Array::from(numbers))))
    }
}

impl fmt::Debug for SequenceFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SequenceFunction").field(&self.asked).finish()
    }
}

impl PartialEq for SequenceFunction {
    fn eq(&self, other: &SequenceFunction) -> bool {
        self.asked == other.asked && Arc::ptr_eq(&self.given, &other.given)
    }
}

impl Eq for SequenceFunction {}

impl Hash for SequenceFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.asked.hash(state);
    }
}
