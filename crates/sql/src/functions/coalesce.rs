//! `coalesce`: DataFusion's, with the types of PostgreSQL.
//!
//! A literal takes the type of the values beside it, so that `coalesce(t, '1970-01-01')` is a
//! timestamp; DataFusion would find no common type, or make all of them text.

use std::sync::Arc;

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::functions::numerics::plain_among;
use crate::passes::expr::matched::misfit_of_types;
use crate::passes::expr::quoted_literals::read_literals;
use crate::resolve::common_types::{float_of_numbers, timestamp_among_dates};
use crate::resolve::documents::{form_in_list, form_of};
use crate::resolve::type_names::{is_text, sql_name};

const NAME: &str = "coalesce";

/// The function; text among its arguments goes by the others.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Coalesce {
    inner: Arc<ScalarUDF>,
}

impl Coalesce {
    /// `coalesce` with its types, other functions as they are.
    pub(crate) fn around(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        match function.name() {
            NAME => Arc::new(ScalarUDF::from(Self { inner: function })),
            _ => function,
        }
    }
}

/// Reads the literals of a call as what they stand beside.
pub(crate) fn read_alternatives(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let mut call = match expr {
        Expr::ScalarFunction(call) if call.func.name() == NAME => call,
        other => return Ok(Transformed::no(other)),
    };
    let types = call.args.iter().map(|arg| arg.get_type(schema)).collect::<DfResult<Vec<_>>>()?;
    if !types.iter().any(is_text) || types.iter().all(is_open) {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    }
    let common = call.func.coerce_types(&types)?.swap_remove(0);
    let text = call.args.iter().zip(&types).find(|(arg, is)| is_text(is) && !matches!(arg, Expr::Literal(..)));
    if let Some((_, text)) = text {
        return plan_err!("COALESCE types {} and {} cannot be matched", sql_name(&common), sql_name(text));
    }
    let mut types = types;
    read_literals(&mut call.args.iter_mut().collect::<Vec<_>>(), &mut types);
    Ok(Transformed::yes(Expr::ScalarFunction(call)))
}

/// The type of plain numerics and others.
fn mixed(types: &[DataType]) -> Option<DataType> {
    types.contains(&TYPE).then(|| plain_among(types).or_else(|| float_of_numbers(types))).flatten()
}

/// Whether a type goes by others.
fn is_open(data_type: &DataType) -> bool {
    is_text(data_type) || data_type.is_null()
}

impl ScalarUDFImpl for Coalesce {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        mixed(arg_types).map_or_else(|| self.inner.return_type(arg_types), Ok)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        if let Some(common) = mixed(&types) {
            let is_nullable = args.arg_fields.iter().all(|field| field.is_nullable());
            return Ok(Arc::new(Field::new(NAME, common, is_nullable)));
        }
        let of_documents = args.arg_fields.first().and_then(|first| form_in_list(first));
        let document = args.arg_fields.iter().find_map(|field| form_of(field));
        let field = self.inner.return_field_from_args(args)?;
        // (ARRAY(query) is a list of documents, or an empty one.)
        Ok(match (of_documents, document) {
            (Some(form), _) => Arc::new(form.mark_list(Field::clone(&field))),
            (None, Some(form)) => Arc::new(form.mark(Field::clone(&field))),
            (None, None) => field,
        })
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> DfResult<Vec<DataType>> {
        if arg_types.iter().all(is_open) {
            return self.inner.coerce_types(arg_types);
        }
        let firm = |is: &DataType| if is_text(is) { DataType::Null } else { is.clone() };
        let firm = arg_types.iter().map(firm).collect::<Vec<_>>();
        // (The planner has no casts of plain numerics: they are made in the resolved plan.)
        if mixed(&firm).is_some() {
            return Ok(arg_types.to_vec());
        }
        // (DataFusion's knows no bytes beside NULL.)
        let mut known = firm.iter().filter(|is| !is.is_null());
        if let Some(common) = known.next().filter(|first| known.all(|is| is == *first)) {
            return Ok(vec![common.clone(); firm.len()]);
        }
        match timestamp_among_dates(&firm).or_else(|| float_of_numbers(&firm)) {
            Some(common) => Ok(vec![common; firm.len()]),
            None => match misfit_of_types("COALESCE", &firm) {
                Some(problem) => plan_err!("{problem}"),
                None => self.inner.coerce_types(&firm),
            },
        }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> DfResult<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }
}
