/**
 * One node on the path of validation: walks its declared inputs in order, collects its errors, converts its constants, and
 * stops wherever a link leads to a node that has not been judged yet. The walk over the graph itself is in walk-graph.ts.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import {
  comparePythonNumbers,
  fromPythonNumber,
  PythonError,
  type PythonNumber,
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
import type { GraphNode } from '../graph.ts'
import { type DeclaredInput, declaredInputs, type NodeSpec } from '../input-specs.ts'
import type { NodeError } from './validation-result.ts'

// Reads a two-element array as a link. A link to a missing node or slot raises an exception in ComfyUI instead of being reported
// as an error. The same exception is thrown here as a PythonError, and validate.ts records it where ComfyUI does.

// What fits into the index type of a 64-bit Python.
const LARGEST_INDEX = 2n ** 63n - 1n

function linkLengthError(input: DeclaredInput, value: JsonValue[]): NodeError {
  return {
    type: 'bad_linked_input',
    message: 'Bad linked input, must be a length-2 list of [node_id, slot_index]',
    details: input.path,
    extra_info: { input_name: input.path, input_config: input.config, received_value: value },
  }
}

function linkTypeError(input: DeclaredInput, link: JsonValue[], received: unknown): NodeError {
  const types = `received_type(${showType(received)}) mismatch input_type(${showType(input.type)})`
  return {
    type: 'return_type_mismatch',
    message: 'Return type mismatch between linked nodes',
    details: `${input.path}, ${types}`,
    extra_info: {
      input_name: input.path,
      input_config: input.config,
      received_type: received,
      linked_node: link,
    },
  }
}

function showType(type: unknown): string {
  return typeof type === 'string' ? type : pythonRepr(type as JsonValue)
}

/** The id as a string, or the exception of looking anything else up among string keys. */
function readLinkedId(value: JsonValue): string {
  if (typeof value === 'string') return value
  if (typeof value === 'object' && value !== null && toNumeric(value) === null) {
    throw new PythonError('TypeError', `unhashable type: '${pythonTypeName(value)}'`)
  }
  throw new PythonError('KeyError', pythonRepr(value))
}

function missingNode(id: string): PythonError {
  return new PythonError('KeyError', pythonRepr(id))
}

/** The slot as an index into the outputs; negative ones count from the end, as they do in Python. */
function readSlot(value: JsonValue, { outputTypes, outputSequence }: NodeSpec): number {
  const slot = toNumeric(value)
  if (typeof slot !== 'bigint') {
    const type = pythonTypeName(value)
    throw new PythonError('TypeError', `${outputSequence} indices must be integers or slices, not ${type}`)
  }
  if (slot > LARGEST_INDEX || slot < -LARGEST_INDEX) {
    throw new PythonError('IndexError', "cannot fit 'int' into an index-sized integer")
  }
  const index = slot < 0n ? Number(slot) + outputTypes.length : Number(slot)
  if (index < 0 || index >= outputTypes.length) {
    throw new PythonError('IndexError', `${outputSequence} index out of range`)
  }
  return index
}

// Which output types may be linked to which input types. Types are strings, unions written with commas, or value lists.

const ANY = '*'
// The editor checks match types; the server accepts every link to or from one.
const MATCH = 'COMFY_MATCHTYPE_V3'

function members(type: string): string[] {
  return type.split(',').map((member) => member.trim())
}

/** Two union types are compatible when they have one member in common. */
function canLink(received: unknown, wanted: unknown): boolean {
  if (received === wanted || received === ANY || wanted === ANY || received === MATCH || wanted === MATCH) return true
  // Old nodes may give a list of choices as an output's type.
  if (Array.isArray(received)) {
    return wanted === 'COMBO' || (Array.isArray(wanted) && pythonEquals(received as JsonValue, wanted as JsonValue))
  }
  if (typeof received !== 'string' || typeof wanted !== 'string') return false
  if (!received.includes(',') && !wanted.includes(',')) return received.trim() === wanted.trim()
  const accepted = new Set(members(wanted))
  const offered = members(received)
  return accepted.has(ANY) || offered.includes(ANY) || offered.some((member) => accepted.has(member))
}

/** The node's own check of a value: true, or what is wrong with it. */
export type CheckInput = (classType: string, input: string, value: JsonValue) => true | string

/** What one class needs to be checked, found once per validation. */
export interface ClassRules {
  readonly spec: NodeSpec
  readonly selfChecked: ReadonlySet<string>
  /** The class itself checks choices, bounds and link types. */
  readonly judgesItself: boolean
}

export interface CheckContext {
  /** The rules of a node of the graph; undefined when there is no such node. */
  rulesOf(nodeId: string): ClassRules | undefined
  readonly checkInput: CheckInput | null
}

/** A node being validated. `next` is the input to check next; a frame that waits for a linked node resumes there. */
export interface NodeFrame {
  readonly id: string
  readonly node: GraphNode
  readonly rules: ClassRules
  readonly inputs: readonly DeclaredInput[]
  readonly errors: NodeError[]
  /** Nodes that this one leads to, as far as the walk followed them. */
  readonly followed: string[]
  /** The node's inputs; copied when the first constant is converted. */
  given: JsonObject
  next: number
  isValid: boolean
  isInCycle: boolean
}

export function openFrame(id: string, node: GraphNode, rules: ClassRules): NodeFrame {
  return {
    id,
    node,
    rules,
    inputs: declaredInputs(rules.spec, node.inputs),
    errors: [],
    followed: [],
    given: node.inputs,
    next: 0,
    isValid: true,
    isInCycle: false,
  }
}

/**
 * Continues until a link has to be followed, and returns the linked node's id, or null when the node is finished.
 * Throws PythonError where ComfyUI would raise.
 */
export function advance(frame: NodeFrame, context: CheckContext): string | null {
  while (frame.next < frame.inputs.length) {
    const input = frame.inputs[frame.next]
    const linked = checkGiven(frame, input, context)
    if (linked !== null) {
      frame.followed.push(linked)
      return linked
    }
    frame.next += 1
  }
  runSelfChecks(frame, context)
  return null
}

function checkGiven(frame: NodeFrame, input: DeclaredInput, context: CheckContext): string | null {
  if (!Object.hasOwn(frame.given, input.path)) {
    if (input.category === 'required') frame.errors.push(missingInputError(input))
    return null
  }
  const value = frame.given[input.path]
  if (Array.isArray(value)) return checkLink(frame, input, { link: value, context })
  checkConstant(frame, input, value)
  return null
}

function missingInputError(input: DeclaredInput): NodeError {
  return {
    type: 'required_input_missing',
    message: 'Required input is missing',
    details: input.name,
    extra_info: { input_name: input.path },
  }
}

function checkLink(
  frame: NodeFrame,
  input: DeclaredInput,
  { link, context }: { link: JsonValue[]; context: CheckContext },
): string | null {
  if (link.length !== 2) {
    frame.errors.push(linkLengthError(input, link))
    return null
  }
  const id = readLinkedId(link[0])
  const source = context.rulesOf(id)
  if (source === undefined) throw missingNode(id)
  const slot = readSlot(link[1], source.spec)
  // Only plain numbers count as slots at run time, so -1 and true are written out.
  if (slot !== link[1]) write(frame, input.path, [id, slot])
  const received = source.spec.outputTypes[slot]
  if (frame.rules.judgesItself || canLink(received, input.type)) return id
  frame.errors.push(linkTypeError(input, link, received))
  return null
}

function checkConstant(frame: NodeFrame, input: DeclaredInput, raw: JsonValue): void {
  const unwrapped = unwrapConstant(raw)
  let value: JsonValue
  try {
    value = convertConstant(input.type, unwrapped)
  } catch (error) {
    if (!(error instanceof PythonError)) throw error
    frame.errors.push(conversionError(input, unwrapped, error))
    return
  }
  if (value !== raw) write(frame, input.path, value)
  if (frame.rules.judgesItself || isSelfChecked(frame.rules, input)) return
  const fault = findConstantError(input, value)
  if (fault !== null) frame.errors.push(fault)
}

function write(frame: NodeFrame, path: string, value: JsonValue): void {
  if (frame.given === frame.node.inputs) frame.given = { ...frame.node.inputs }
  frame.given[path] = value
}

function isSelfChecked(rules: ClassRules, input: DeclaredInput): boolean {
  return rules.selfChecked.has(input.path) || input.upload !== null
}

function runSelfChecks(frame: NodeFrame, { checkInput }: CheckContext): void {
  if (checkInput === null) return
  for (const input of frame.inputs) {
    if (!isSelfChecked(frame.rules, input) || !Object.hasOwn(frame.given, input.path)) continue
    const value = frame.given[input.path]
    // A linked value is not known before the run.
    if (Array.isArray(value)) continue
    const answer = checkInput(frame.node.classType, input.path, value)
    if (answer !== true) frame.errors.push(selfCheckError(input, answer))
  }
}

function selfCheckError(input: DeclaredInput, answer: string): NodeError {
  return {
    type: 'custom_validation_failed',
    message: 'Custom validation failed for node',
    details: answer === '' ? input.path : `${input.path} - ${answer}`,
    extra_info: { input_name: input.path },
  }
}

// The checks of one constant against its declaration: conversion, range, choice. Each returns the first fault or null.

// Longer lists are left out of errors: they may name thousands of installed weights.
const MAX_LISTED_CHOICES = 20

function conversionError(input: DeclaredInput, value: JsonValue, error: PythonError): NodeError {
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

function findConstantError(input: DeclaredInput, value: JsonValue): NodeError | null {
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
function convertConstant(type: unknown, value: JsonValue): JsonValue {
  if (typeof type !== 'string' || !Object.hasOwn(CONVERTERS, type)) return value
  return CONVERTERS[type](value)
}
