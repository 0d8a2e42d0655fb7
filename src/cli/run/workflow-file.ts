/** Reads a workflow file: JSON in either format, or a picture, sound or model that carries a workflow. Of media only the metadata is read. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import path from 'node:path'
import type { ByteSource } from '../../../lib/files/embedded/byte-source.ts'
import { isJsonObject, type JsonObject, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { readCarriedTexts } from '../../compose/local-conversion.ts'
import { CommandError, EXIT, toPrintable } from '../terminal.ts'

// Far above any workflow; a video is not read as text by mistake.
const MAX_TEXT_BYTES = 67_108_864

export function readWorkflowFile(file: string, cwd: string): JsonObject {
  const texts = readTexts(file, cwd)
  let problem = 'it carries neither a workflow nor a prompt'
  for (const text of texts) {
    try {
      const content = parseLosslessJson(text)
      if (isJsonObject(content)) return content
      problem = 'it must be a JSON object'
    } catch (error) {
      problem = `it is not valid JSON: ${(error as Error).message}`
    }
  }
  throw new CommandError(toPrintable(`${file} does not hold a workflow: ${problem}`), EXIT.usage)
}

function readTexts(file: string, cwd: string): string[] {
  let handle: number | null = null
  try {
    handle = openSync(path.resolve(cwd, file), 'r')
    const source = openSource(handle)
    const carried = readCarriedTexts(source)
    if (carried !== null) return carried
    if (source.size > MAX_TEXT_BYTES) throw new Error('it is too large for a workflow')
    return [
      Buffer.from(source.read(0, source.size))
        .toString('utf8')
        .replace(/^\ufeff/, ''),
    ]
  } catch (error) {
    throw new CommandError(toPrintable(`cannot read ${file}: ${(error as Error).message}`), EXIT.usage)
  } finally {
    if (handle !== null) closeSync(handle)
  }
}

function openSource(handle: number): ByteSource {
  return {
    size: fstatSync(handle).size,
    read(offset, length) {
      const bytes = Buffer.alloc(length)
      return bytes.subarray(0, readSync(handle, bytes, 0, length, offset))
    },
  }
}
