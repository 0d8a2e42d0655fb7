/** The checks of one constant against its declaration: conversion, range, choice. Each returns the first fault or null. */
import { isJsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { comparePythonNumbers, PythonError, type PythonNumber } from '../../../lib/python/numbers.ts'
import {
  fromPythonNumber,
  pythonBool,
  pythonEquals,
  pythonFloat,
  pythonInt,
  pythonRepr,
  pythonStr,
  pythonTypeName,
  toNumeric,
  toPythonNumber,
} from '../../../lib/python/values.ts'
import type { DeclaredInput } from '../input-specs.ts'
import type { NodeError } from './validation-result.ts'

// Longer lists are left out of errors: they may name thousands of installed weights.
const MAX_LISTED_CHOICES = 20

export function conversionError(input: DeclaredInput, value: JsonValue, error: PythonError): NodeError {
  return {
    type: 'invalid_input_type',
    message: `Failed to convert an input value to a ${pythonStr(input.type as JsonValue)} value`,
    details: `${input.path}, ${pythonStr(value)}, ${error.message}`,
    extra_info: {
      input_name: input.path,
      input_config: input.config,
      received_value: value,
      exception_message: error.message,
    },
  }
}

export function findConstantError(input: DeclaredInput, value: JsonValue): NodeError | null {
  return findRangeError(input, value) ?? findChoiceError(input, value)
}

function findRangeError(input: DeclaredInput, value: JsonValue): NodeError | null {
  const { min, max } = input.options as { min?: JsonValue; max?: JsonValue }
  if (min !== undefined && min !== null && compareWith(input, value, min, '<') === -1) {
    return rangeError(input, value, {
      type: 'value_smaller_than_min',
      message: `Value ${pythonStr(value)} smaller than min of ${pythonStr(min)}`,
    })
  }
  if (max !== undefined && max !== null && compareWith(input, value, max, '>') === 1) {
    return rangeError(input, value, {
      type: 'value_bigger_than_max',
      message: `Value ${pythonStr(value)} bigger than max of ${pythonStr(max)}`,
    })
  }
  return null
}

function rangeError(input: DeclaredInput, value: JsonValue, fault: Pick<NodeError, 'type' | 'message'>): NodeError {
  return {
    ...fault,
    details: input.path,
    extra_info: { input_name: input.path, input_config: input.config, received_value: value },
  }
}

function compareWith(input: DeclaredInput, value: JsonValue, bound: JsonValue, sign: '<' | '>') {
  const limit = toNumeric(bound)
  const number: PythonNumber | null = input.type === 'FLOAT' ? pythonFloat(value) : toNumeric(value)
  if (number !== null && limit !== null) return comparePythonNumbers(number, limit)
  const [left, right] = [pythonTypeName(value), pythonTypeName(bound)]
  throw new PythonError('TypeError', `'${sign}' not supported between instances of '${left}' and '${right}'`)
}

function findChoiceError(input: DeclaredInput, value: JsonValue): NodeError | null {
  const choices = choicesOf(input)
  if (choices === null) return null
  const asked = input.options.multiselect === true && Array.isArray(value) ? value : [value]
  const unknown = asked.filter((item) => !holds(choices, item))
  if (unknown.length === 0) return null
  const isLong = choices.length > MAX_LISTED_CHOICES
  const list = isLong ? `(list of length ${choices.length})` : pythonRepr(choices as JsonValue[])
  return {
    type: 'value_not_in_list',
    message: 'Value not in list',
    details: `${input.path}: ${unknown.map(pythonRepr).join(', ')} not in ${list}`,
    extra_info: { input_name: input.path, input_config: isLong ? null : input.config, received_value: value },
  }
}

/** The allowed values of an old-style or new-style combo; null for every other type. */
export function choicesOf(input: DeclaredInput): readonly JsonValue[] | null {
  if (typeof input.type !== 'string') return input.type as readonly JsonValue[]
  if (input.type !== 'COMBO') return null
  return Array.isArray(input.options.options) ? (input.options.options as JsonValue[]) : []
}

function holds(choices: readonly JsonValue[], value: JsonValue): boolean {
  // A string equals only the same string, in Python as in JavaScript.
  if (typeof value === 'string') return choices.includes(value)
  return choices.some((choice) => pythonEquals(choice, value))
}

// Converts a constant before it is checked: removes the `__value__` wrapper (which marks a list that is not a link), and converts
// the four primitive types as Python does. A value that already has its type is returned unchanged, so that a number keeps the
// digits that were submitted.

const WRAPPER = '__value__'

export function unwrapConstant(value: JsonValue): JsonValue {
  return isJsonObject(value) && Object.hasOwn(value, WRAPPER) ? value[WRAPPER] : value
}

function toInt(value: JsonValue): JsonValue {
  if (typeof toPythonNumber(value) === 'bigint') return value
  return fromPythonNumber(pythonInt(value))
}

function toFloat(value: JsonValue): JsonValue {
  if (typeof toPythonNumber(value) === 'number') return value
  const float = pythonFloat(value)
  // JSON has no NaN, so the text stays and is converted where it is used.
  return Number.isNaN(float) ? 'nan' : fromPythonNumber(float)
}

const CONVERTERS: Readonly<Record<string, (value: JsonValue) => JsonValue>> = {
  INT: toInt,
  FLOAT: toFloat,
  STRING: pythonStr,
  BOOLEAN: pythonBool,
}

/** Throws PythonError when the value cannot be converted. Other types accept any constant; a wrong one fails at run time, as in ComfyUI. */
export function convertConstant(type: unknown, value: JsonValue): JsonValue {
  if (typeof type !== 'string' || !Object.hasOwn(CONVERTERS, type)) return value
  return CONVERTERS[type](value)
}
