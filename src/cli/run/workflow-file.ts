/** Reads a workflow file: JSON in either format, or a picture, sound or model that carries a workflow. Of media only the metadata is read. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import path from 'node:path'
import type { ByteSource } from '../../../lib/files/mp4-boxes.ts'
import { isJsonObject, type JsonObject, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { readCarriedTexts } from '../../compose/local-run.ts'
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
  try {
    return withSource(path.resolve(cwd, file), (source) => readCarriedTexts(source) ?? [readPlainText(source)])
  } catch (error) {
    throw new CommandError(toPrintable(`cannot read ${file}: ${(error as Error).message}`), EXIT.usage)
  }
}

/** The JSON texts that a picture, sound or film carries; none of any other file. Throws what reading throws. */
export function readCarriedBy(file: string): string[] {
  return withSource(file, readCarriedTexts) ?? []
}

function readPlainText(source: ByteSource): string {
  if (source.size > MAX_TEXT_BYTES) throw new Error('it is too large for a workflow')
  const text = Buffer.from(source.read(0, source.size)).toString('utf8')
  return text.replace(/^\ufeff/, '')
}

function withSource<Result>(file: string, read: (source: ByteSource) => Result): Result {
  const handle = openSync(file, 'r')
  try {
    return read(openSource(handle))
  } finally {
    closeSync(handle)
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
