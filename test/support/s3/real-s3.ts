/**
 * A real S3-compatible server for tests, when one can be had: the one that `ATELIER_TEST_S3` names, else versitygw or moto from the
 * path. Nothing is installed here.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { readKeys, toKeySource } from '../../../src/adapters/blobs/s3/bucket-keys.ts'
import { openS3Client } from '../../../src/adapters/blobs/s3/s3-client.ts'
import { findFreePort } from '../network/free-port.ts'
import { waitUntil } from '../wait-until.ts'

export interface RealS3 extends AsyncDisposable {
  readonly name: string
  readonly endpoint: string
  readonly bucket: string
  readonly keys: string
}

interface FoundS3 {
  readonly name: string
  /** Whether it checks signatures and checksums and does as a signed query says; moto does not look at any of them. */
  readonly isStrict: boolean
  start(): Promise<RealS3>
}

const KEYS = 'AKIDEXAMPLE:wJalrXUtnFEMI+K7MDENG+bPxRfiCYEXAMPLEKEY'
const BUCKET = 'real-bytes'

export const HOW_TO_GET_ONE =
  'no S3 server: set ATELIER_TEST_S3 and ATELIER_TEST_S3_KEYS, or have versitygw (go install github.com/versity/versitygw/cmd/versitygw@latest) or moto_server (pip install "moto[server,s3]") on the path'

/** The servers that this machine has; none: the tests are skipped. */
export function findRealS3(): readonly FoundS3[] {
  const { ATELIER_TEST_S3: endpoint, ATELIER_TEST_S3_KEYS: keys = KEYS } = process.env
  if (endpoint !== undefined)
    return [{ name: endpoint, isStrict: true, start: () => withBucket({ name: endpoint, endpoint, keys }) }]
  const versity = findProgram('versitygw')
  const moto = findProgram('moto_server')
  return [
    ...(versity === null ? [] : [{ name: 'versitygw', isStrict: true, start: () => startVersity(versity) }]),
    ...(moto === null ? [] : [{ name: 'moto', isStrict: false, start: () => startMoto(moto) }]),
  ]
}

function findProgram(name: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), join(homedir(), 'go', 'bin')]
  const path = folders.map((folder) => join(folder, name)).find((each) => existsSync(each))
  // A shim of a version manager may lead nowhere.
  return path !== undefined && spawnSync(path, ['--help'], { stdio: 'ignore' }).status === 0 ? path : null
}

async function startVersity(program: string): Promise<RealS3> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-versitygw-'))
  const port = await findFreePort()
  const [id = '', secret = ''] = KEYS.split(':')
  const env = { ...process.env, ROOT_ACCESS_KEY: id, ROOT_SECRET_KEY: secret }
  const child = spawn(program, ['--port', `127.0.0.1:${port}`, 'posix', folder], { env, stdio: 'ignore' })
  const server = { name: 'versitygw', endpoint: `http://127.0.0.1:${port}`, keys: KEYS }
  return withBucket(server, { child, folder })
}

async function startMoto(program: string): Promise<RealS3> {
  const port = await findFreePort()
  const child = spawn(program, ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' })
  return withBucket({ name: 'moto', endpoint: `http://127.0.0.1:${port}`, keys: KEYS }, { child })
}

interface Owned {
  readonly child?: ChildProcess
  readonly folder?: string
}

async function withBucket(
  server: Omit<RealS3, 'bucket' | typeof Symbol.asyncDispose>,
  { child, folder }: Owned = {},
): Promise<RealS3> {
  const address = {
    bucket: BUCKET,
    endpoint: server.endpoint,
    publicEndpoint: server.endpoint,
    region: 'us-east-1',
    isPathStyle: true,
  }
  await using client = openS3Client({ address, keys: toKeySource(readKeys(server.keys)) })
  await waitUntil(() =>
    client.send({ method: 'PUT', key: null }).then(
      () => true,
      (error: Error) => /BucketAlready/.test(error.message),
    ),
  )
  return {
    ...server,
    bucket: BUCKET,
    async [Symbol.asyncDispose]() {
      if (child !== undefined) {
        const ended = new Promise((resolve) => child.once('exit', resolve))
        child.kill('SIGTERM')
        await ended
      }
      if (folder !== undefined) await rm(folder, { recursive: true, force: true })
    },
  }
}
