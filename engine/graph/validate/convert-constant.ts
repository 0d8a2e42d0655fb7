/**
 * Converts a constant before it is checked: removes the `__value__` wrapper (which marks a list that is not a link), and converts
 * the four primitive types as Python does. A value that already has its type is returned unchanged, so that a number keeps the
 * digits that were submitted.
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
