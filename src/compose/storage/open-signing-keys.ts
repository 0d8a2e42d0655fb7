/**
 * The keys that sign content addresses: those of the configuration, else a key that is made at the first start and kept. One
 * process keeps it in a file of the data folder, one key per line, newest first, as in the setting; to rotate, put a new key
 * first. Processes that share a database keep it there, sealed under the secret key that all of them have.
 */
import { randomBytes } from 'node:crypto'
import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileWhole } from '../../../lib/files/write-file-whole.ts'
import type { Sealer } from '../../../lib/sealer.ts'
import { readSigningKeys, type SigningSecret } from '../../config/secrets.ts'
import { type SigningKey, toSigningKey } from '../../domain/assets/signed-url.ts'
import { type MetaStore, StoreOpenError } from '../../domain/store.ts'

const FILE_NAME = 'signing-keys'
const META_KEY = 'signing_keys'
const OWNER_ONLY = 0o600
const SECRET_BYTES = 32

interface SigningKeysOptions {
  readonly configured: readonly SigningSecret[]
  /** The data folder of the only process, which must exist; or the store that several processes share. */
  readonly kept:
    | { readonly in: 'folder'; readonly directory: string }
    | { readonly in: 'store'; readonly store: MetaStore; readonly sealer: Sealer }
}

export async function openSigningKeys({ configured, kept }: SigningKeysOptions): Promise<readonly SigningKey[]> {
  if (configured.length > 0) return configured.map(toKey)
  return kept.in === 'folder' ? readFolder(kept.directory) : readStore(kept.store, kept.sealer)
}

function toKey({ name, secret }: SigningSecret): SigningKey {
  return name === null ? toSigningKey(secret.reveal()) : { id: name, secret: secret.reveal() }
}

async function readFolder(directory: string): Promise<readonly SigningKey[]> {
  const path = join(directory, FILE_NAME)
  const text = (await readIfThere(path)) ?? (await writeNew(path))
  try {
    return toKeys(text)
  } catch (error) {
    // The reader's messages hold no part of a key.
    throw new Error(`the file ${path} ${(error as Error).message}`)
  }
}

async function readStore(store: MetaStore, sealer: Sealer): Promise<readonly SigningKey[]> {
  const stored = await store.ensureMeta(META_KEY, () => sealSigningKeys(makeKey(), sealer))
  const text = unsealSigningKeys(stored, sealer)
  if (text !== null) {
    await store.changeMeta(META_KEY, (known) => renewSeal(known ?? stored, sealer))
    return toKeys(text)
  }
  throw new StoreOpenError(
    'unusable',
    'The secret key is not the one that the other processes of this database use: what they sealed does not open. ' +
      'Set ATELIER_SECRET_KEY to theirs; when you exchange it, give the former one too, behind the new one and a comma.',
  )
}

/** After the secret key was exchanged; otherwise the same text. */
function renewSeal(stored: string, sealer: Sealer): string {
  const renewed = sealer.renew(Buffer.from(stored, 'base64'), META_KEY)
  return renewed === null ? stored : Buffer.from(renewed).toString('base64')
}

function sealSigningKeys(text: string, sealer: Sealer): string {
  return Buffer.from(sealer.seal(Buffer.from(text), META_KEY)).toString('base64')
}

function unsealSigningKeys(stored: string, sealer: Sealer): string | null {
  const opened = sealer.open(Buffer.from(stored, 'base64'), META_KEY)
  return opened === null ? null : Buffer.from(opened).toString('utf8')
}

/** For a move: what the file of a folder holds, as a store keeps it; null: there is none. */
export async function sealFolderKeys(directory: string, sealer: Sealer): Promise<string | null> {
  const text = await readIfThere(join(directory, FILE_NAME))
  return text === null ? null : sealSigningKeys(text, sealer)
}

/** For a move: what a store keeps, as the file of a folder. False: the secret key does not open it. */
export async function unsealIntoFolder(stored: string, directory: string, sealer: Sealer): Promise<boolean> {
  const text = unsealSigningKeys(stored, sealer)
  if (text === null) return false
  await writeFileWhole(join(directory, FILE_NAME), `${text.trim()}\n`, { mode: OWNER_ONLY, isDurable: true })
  return true
}

function toKeys(text: string): readonly SigningKey[] {
  return readSigningKeys(text.trim().split(/\s+/).join(',')).map(toKey)
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    const text = await readFile(path, 'utf8')
    await chmod(path, OWNER_ONLY)
    return text
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

async function writeNew(path: string): Promise<string> {
  const text = `${makeKey()}\n`
  await writeFileWhole(path, text, { mode: OWNER_ONLY, isDurable: true })
  return text
}

function makeKey(): string {
  return randomBytes(SECRET_BYTES).toString('base64url')
}
