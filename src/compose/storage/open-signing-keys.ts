/**
 * The keys that sign content addresses: those of the configuration, else a key that is made at the first start and stored in the
 * data folder. That file has one key per line, newest first, as in the setting; to rotate, put a new key first.
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
  /** The data folder, which must exist. */
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
