/**
 * Files as inputs and outputs of the account. Bytes that the service has are not sent again, and a file that it has under the same name
 * is left alone, so an import that broke off can be run once more. A name that means other bytes there is not taken from them
 * unless that is wished.
 */
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { RefusedError, type RunClient } from '../server/client.ts'
import { toFields } from '../server/job-answers.ts'
import { hashFile } from '../server/resumable-upload.ts'
import { type Placed, toReadFailure } from './walk-folder.ts'

export interface PlaceOptions {
  /** Only says what it would do. */
  readonly isDry: boolean
  readonly overwrite: boolean
  readonly signal: AbortSignal
}

export type FileFolder = 'input' | 'output'

export interface ServiceFiles {
  /** `name`: within the folder. `hash`: what the bytes must be, if that is known. */
  place(
    file: string,
    as: { readonly folder: FileFolder; readonly name: string; readonly hash?: string },
  ): Promise<Placed>
}

// The service lists at most this many files.
const MAX_KNOWN = 20_000
const PAGE = 500
// A path that begins with one of these names would mean that folder and not an input.
const OTHER_FOLDER = /^(input|output|temp|models)(\/|$)/
// A refusal of this one file. Anything else, such as a key that is not good, would refuse all of them.
const OF_THIS_FILE: ReadonlySet<number> = new Set([400, 409, 413, 422, 507])
const MAX_WAITS = 20

export async function openServiceFiles(client: RunClient, options: PlaceOptions): Promise<ServiceFiles> {
  const { isDry, overwrite, signal } = options
  const known = await listKnown(client, signal)

  async function send(file: string, filePath: string, hash: string): Promise<Placed> {
    const body = JSON.stringify({ hash: `blake3:${hash}`, file_path: filePath })
    try {
      const headers = { 'Content-Type': 'application/json' }
      const { status } = await client.call('/assets/from-hash', { method: 'POST', headers, body, signal })
      return { outcome: status === 201 ? 'brought' : 'already there' }
    } catch (error) {
      if (!(error instanceof RefusedError) || error.status !== 404) throw error
      await client.upload(file, signal, filePath)
      return { outcome: 'brought' }
    }
  }

  return {
    async place(file, { folder, name, ...expected }) {
      const filePath = folder === 'output' || OTHER_FOLDER.test(name) ? `${folder}/${name}` : name
      let hash: string
      try {
        hash = await hashFile(file)
      } catch (error) {
        return { outcome: 'refused', reason: toReadFailure(error) }
      }
      if (expected.hash !== undefined && expected.hash !== hash)
        return { outcome: 'refused', reason: 'is no longer the file that was uploaded' }
      const there = known.get(filePath) ?? known.get(`${folder}/${name}`)
      if (there === hash) return { outcome: 'already there' }
      if (there !== undefined && !overwrite)
        return {
          outcome: 'refused',
          reason: 'has the name of another file here; --overwrite lets the name mean this one',
        }
      if (isDry) return { outcome: 'brought' }
      try {
        const placed = await patiently(() => send(file, filePath, hash), signal)
        known.set(filePath, hash)
        return placed
      } catch (error) {
        if (error instanceof RefusedError && OF_THIS_FILE.has(error.status))
          return { outcome: 'refused', reason: `was refused: ${error.lines.join(' ')}` }
        // The file may have been removed or made unreadable since it was hashed; sending it then fails like a broken connection.
        const failure = await access(file, constants.R_OK).then(() => null, toReadFailure)
        if (failure === null) throw error
        return { outcome: 'refused', reason: failure }
      }
    },
  }
}

/** The newest file of every name, with its hash. Of a service that was built without the console nothing is known. */
async function listKnown(client: RunClient, signal: AbortSignal): Promise<Map<string, string>> {
  const known = new Map<string, string>()
  let cursor: string | null = ''
  while (cursor !== null && known.size < MAX_KNOWN) {
    const query = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const link = `${client.baseUrl}/console/v1/assets?limit=${PAGE}${query}`
    const answer = toFields(await client.read(link, signal).catch(onlyIfThere))
    for (const asset of Array.isArray(answer['assets']) ? answer['assets'].map(toFields) : []) {
      const [name, hash] = [String(asset['name']), String(asset['hash']).replace('blake3:', '')]
      if (!known.has(name)) known.set(name, hash)
    }
    cursor = typeof answer['next_cursor'] === 'string' ? answer['next_cursor'] : null
  }
  return known
}

function onlyIfThere(error: unknown): null {
  if (error instanceof RefusedError && error.status === 404) return null
  throw error
}

/** A service that limits the rate of requests answers 429: then the same request is sent again after the time that it names. */
async function patiently<Result>(attempt: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
  for (let waits = 0; ; waits++) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof RefusedError) || error.status !== 429 || waits >= MAX_WAITS) throw error
      await sleep((error.retryAfterSeconds ?? 2) * 1000, signal)
      signal.throwIfAborted()
    }
  }
}
