/** Lines of a stream of text, each bounded: whoever prints without end gets the rest of the line dropped. */

import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

export function readLines(stream: Readable, maxLength: number, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  stream.on('data', (chunk: Buffer) => {
    const parts = decoder.write(chunk).split('\n')
    for (const [index, part] of parts.entries()) {
      if (rest.length < maxLength) rest += part.slice(0, maxLength - rest.length)
      if (index === parts.length - 1) break
      onLine(`${rest}\n`)
      rest = ''
    }
  })
  stream.on('end', () => {
    if (rest !== '') onLine(`${rest}\n`)
    rest = ''
  })
  stream.on('error', () => {})
}
