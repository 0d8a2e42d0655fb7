/**
 * The keys that sign content addresses: those of the configuration, else one of our own that lies in the data folder and is
 * made at the first start. Lines of that file are read like the setting: put a new key first to exchange it.
 */
import { randomBytes } from 'node:crypto'
import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileWhole } from '../../../lib/files/write-file-whole.ts'
import { readSigningKeys, type SigningSecret } from '../../config/secrets.ts'
import { type SigningKey, toSigningKey } from '../../domain/assets/signed-url.ts'

const FILE_NAME = 'signing-keys'
const OWNER_ONLY = 0o600
const SECRET_BYTES = 32

interface SigningKeysOptions {
  readonly configured: readonly SigningSecret[]
  /** The data folder; it exists. */
  readonly directory: string
}

export async function openSigningKeys({ configured, directory }: SigningKeysOptions): Promise<readonly SigningKey[]> {
  if (configured.length > 0) return configured.map(toKey)
  const path = join(directory, FILE_NAME)
  const text = (await readIfThere(path)) ?? (await writeNew(path))
  try {
    return readSigningKeys(text.trim().split(/\s+/).join(',')).map(toKey)
  } catch (error) {
    // The reader's messages hold no part of a key.
    throw new Error(`the file ${path} ${(error as Error).message}`)
  }
}

function toKey({ name, secret }: SigningSecret): SigningKey {
  return name === null ? toSigningKey(secret.reveal()) : { id: name, secret: secret.reveal() }
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
  const text = `${randomBytes(SECRET_BYTES).toString('base64url')}\n`
  await writeFileWhole(path, text, { mode: OWNER_ONLY, isDurable: true })
  return text
}
