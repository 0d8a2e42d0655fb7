/**
 * What becomes of a constant before it is checked: the `__value__` wrapper (the way to write a list that is no link) comes off,
 * and the four primitive types are converted as Python converts them. A value that already has its type is returned as it is,
 * so that the digits that were submitted survive.
 */
import { isJsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import {
  fromPythonNumber,
  pythonBool,
  pythonFloat,
  pythonInt,
  pythonStr,
  toPythonNumber,
} from '../../../lib/python/values.ts'

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
  // NaN has no JSON number; the text that means it stays and is converted again wherever it is used.
  return Number.isNaN(float) ? 'nan' : fromPythonNumber(float)
}

const CONVERTERS: Readonly<Record<string, (value: JsonValue) => JsonValue>> = {
  INT: toInt,
  FLOAT: toFloat,
  STRING: pythonStr,
  BOOLEAN: pythonBool,
}

/** Throws PythonError when the value cannot be converted. Other types take any constant: sockets fail at run time, as they must. */
export function convertConstant(type: unknown, value: JsonValue): JsonValue {
  if (typeof type !== 'string' || !Object.hasOwn(CONVERTERS, type)) return value
  return CONVERTERS[type](value)
}
