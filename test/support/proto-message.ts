/** Reads a message of Protocol Buffers strictly: the values of each field, numbers as numbers and everything else as bytes. */
import assert from 'node:assert/strict'

export type Message = Readonly<Record<number, readonly (number | Buffer)[]>>

export function readMessage(message: Buffer): Message {
  const fields: Record<number, (number | Buffer)[]> = {}
  let at = 0
  const varint = () => {
    let [value, factor] = [0, 1]
    for (let byte = 128; byte >= 128; factor *= 128) {
      byte = message[at++] ?? assert.fail('the message ends within a number')
      value += (byte % 128) * factor
    }
    return value
  }
  const take = (length: number) => {
    assert.ok(at + length <= message.length, 'the message ends within a field')
    at += length
    return message.subarray(at - length, at)
  }
  const read: Readonly<Record<number, () => number | Buffer>> = {
    ...{ 0: varint, 1: () => take(8), 2: () => take(varint()), 5: () => take(4) },
  }
  while (at < message.length) {
    const tag = varint()
    const value = read[tag % 8]?.() ?? assert.fail(`a field of the kind ${tag % 8}`)
    const field = Math.floor(tag / 8)
    fields[field] = [...(fields[field] ?? []), value]
  }
  return fields
}

export function bytes(value: number | Buffer | undefined): Buffer {
  return typeof value === 'object' ? value : assert.fail('bytes are missing')
}

export function text(values: Message[number] | undefined): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes(values?.[0]))
}

export function all(message: Message, field: number): readonly Buffer[] {
  return (message[field] ?? []).map(bytes)
}
