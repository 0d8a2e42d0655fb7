/**
 * Spans as OTLP has them in Protocol Buffers: https://github.com/open-telemetry/opentelemetry-proto. A third as long as the same in JSON,
 * and bytes are most of what it costs to send a span.
 */
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { TraceContext } from '../../../lib/tracing/trace-context.ts'
import type { Attributes, SpanKind } from '../../../lib/tracing/tracer.ts'
import { ProtoWriter } from './proto-writer.ts'

/** A span that has ended, as it is reported. */
export interface EndedSpan {
  readonly name: string
  readonly kind: SpanKind
  readonly context: TraceContext
  /** '' for none. */
  readonly parentSpanId: string
  readonly startMs: number
  readonly endMs: number
  /** In the order in which they were set. */
  readonly attributes: readonly Attributes[]
  /** null: it went well, as far as is known. */
  readonly failure: string | null
}

// A trace is read by a person, so everything in it is short.
const MAX_NAME_LENGTH = 120
const MAX_ATTRIBUTES = 32
const MAX_KEY_LENGTH = 64
const MAX_VALUE_LENGTH = 256

/** No span is longer: all of its texts, with three bytes for each letter. */
export const MAX_SPAN_BYTES = 40_960

const KIND: Record<SpanKind, number> = { internal: 1, server: 2, client: 3 }
const STATUS_ERROR = 2

// The number of a field, and what kind of value it has: a length and bytes, 8 bytes, or a number.
const bytesOf = (field: number) => (field << 3) | 2
const wordOf = (field: number) => (field << 3) | 1
const numberOf = (field: number) => field << 3

const SPAN = {
  traceId: bytesOf(1),
  spanId: bytesOf(2),
  state: bytesOf(3),
  parentId: bytesOf(4),
  name: bytesOf(5),
  kind: numberOf(6),
  start: wordOf(7),
  end: wordOf(8),
  attribute: bytesOf(9),
  status: bytesOf(15),
}
const SPANS = bytesOf(2)

// Names of spans and keys of attributes come again and again: routes, steps, classes of nodes.
const MAX_KNOWN = 1000
const MAX_KNOWN_BYTES = 2048

type Value = string | number | boolean

/** Writes a span behind what has been written, where there are `MAX_SPAN_BYTES` left. */
export function createWriteSpan(): (writer: ProtoWriter, span: EndedSpan) => void {
  const names = createKnown(SPAN.name, MAX_NAME_LENGTH)
  const writeAttribute = createWriteAttribute(MAX_KEY_LENGTH)
  return (writer, { name, kind, context, parentSpanId, startMs, endMs, attributes, failure }) => {
    writer.byte(SPANS)
    const from = writer.open()
    writer.id(SPAN.traceId, context.traceId)
    writer.id(SPAN.spanId, context.spanId)
    if (context.state !== '') writer.text(SPAN.state, context.state)
    if (parentSpanId !== '') writer.id(SPAN.parentId, parentSpanId)
    writer.copy(names(name))
    writer.byte(SPAN.kind)
    writer.byte(KIND[kind])
    writer.time(SPAN.start, startMs)
    writer.time(SPAN.end, endMs)
    let count = 0
    for (const set of attributes)
      for (const key in set) if (count++ < MAX_ATTRIBUTES) writeAttribute(writer, SPAN.attribute, key, set[key]!)
    if (failure !== null) writeStatus(writer, failure)
    writer.close(from)
  }
}

function writeStatus(writer: ProtoWriter, failure: string): void {
  writer.byte(SPAN.status)
  const from = writer.open()
  writer.text(bytesOf(2), cut(failure, MAX_VALUE_LENGTH))
  writer.byte(numberOf(3))
  writer.byte(STATUS_ERROR)
  writer.close(from)
}

function createWriteAttribute(maxKeyLength: number) {
  const keys = createKnown(bytesOf(1), maxKeyLength)
  return (writer: ProtoWriter, tag: number, key: string, value: Value) => {
    writer.byte(tag)
    const from = writer.open()
    writer.copy(keys(key))
    writer.byte(bytesOf(2))
    const inner = writer.open()
    writeValue(writer, value)
    writer.close(inner)
    writer.close(from)
  }
}

function writeValue(writer: ProtoWriter, value: Value): void {
  if (typeof value === 'string') writer.text(bytesOf(1), cut(value, MAX_VALUE_LENGTH))
  else if (typeof value === 'boolean') {
    writer.byte(numberOf(2))
    writer.byte(Number(value))
  } else if (Number.isSafeInteger(value) && value >= 0) {
    writer.byte(numberOf(3))
    writer.varint(value)
  } else {
    writer.byte(wordOf(4))
    writer.at = writer.bytes.writeDoubleLE(value, writer.at)
  }
}

/** Fields of texts that come again and again, as bytes. */
function createKnown(tag: number, maxLength: number): (text: string) => Uint8Array {
  const known = new BoundedMap<string, Uint8Array>(MAX_KNOWN)
  return (text) => {
    const found = known.get(text)
    if (found !== undefined) return found
    const writer = new ProtoWriter(Buffer.alloc(MAX_KNOWN_BYTES))
    writer.text(tag, cut(text, maxLength))
    const made = new Uint8Array(writer.bytes.subarray(0, writer.at))
    known.set(text, made)
    return made
  }
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : text.slice(0, length).toWellFormed()
}

// What describes a process is bounded by the settings that name it.
const MAX_ABOUT_BYTES = 262_144
// A tag and a length.
const MAX_FRAME_BYTES = 16

/** What stands before the spans of a request, which are this long together. */
export function createWriteHead(
  resource: Readonly<Record<string, string>>,
  scope: { readonly name: string; readonly version: string },
): (spansLength: number) => Buffer {
  const writeAttribute = createWriteAttribute(MAX_VALUE_LENGTH)
  const about = written(MAX_ABOUT_BYTES, (writer) => {
    writer.byte(bytesOf(1))
    const from = writer.open()
    for (const [key, value] of Object.entries(resource)) writeAttribute(writer, bytesOf(1), key, value)
    writer.close(from)
  })
  const source = written(MAX_ABOUT_BYTES, (writer) => {
    writer.byte(bytesOf(1))
    const from = writer.open()
    writer.text(bytesOf(1), scope.name)
    writer.text(bytesOf(2), scope.version)
    writer.close(from)
  })
  return (spansLength) => {
    const inner = written(source.length + MAX_FRAME_BYTES, (writer) => {
      writer.byte(bytesOf(2))
      writer.varint(source.length + spansLength)
      writer.copy(source)
    })
    return written(about.length + inner.length + MAX_FRAME_BYTES, (writer) => {
      writer.byte(bytesOf(1))
      writer.varint(about.length + inner.length + spansLength)
      writer.copy(about)
      writer.copy(inner)
    })
  }
}

function written(maxBytes: number, write: (writer: ProtoWriter) => void): Buffer {
  const writer = new ProtoWriter(Buffer.alloc(maxBytes))
  write(writer)
  return Buffer.from(writer.bytes.subarray(0, writer.at))
}
