/** `atelier doctor`: checks everything a start depends on, and says what to do about each problem. */

import { spawnSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import path from 'node:path'
import type { Command } from 'commander'
import { type EngineCondition, inspectEngines } from '../../compose/engines/inspect-engines.ts'
import { type BucketFacts, inspectBucket } from '../../compose/storage/inspect-storage.ts'
import type { FrontendConfig } from '../../config/blocks/http-config.ts'
import type { Config, LoadedConfig } from '../../config/config.ts'
import { ConfigError } from '../../config/config-error.ts'
import { OTHER_ENV } from '../../config/env.ts'
import { addSettingFlags, loadFromCommandLine } from '../setting-flags.ts'
import { EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { type Finding, fail, ok, toReason, warn } from './check.ts'
import { checkAccess, checkAddress, checkDataFolder, checkRemote, checkSpace, checkStore } from './check-service.ts'

export function addDoctor(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program.command('doctor').description('check everything a start depends on')
  addSettingFlags(command).action(async (options: Record<string, unknown>) => {
    const findings = [...(await examineMachine()), ...(await examineService(options, terminal))]
    for (const line of toTable(findings)) printLine(terminal.stdout, toPrintable(line))
    finish(findings.some(({ state }) => state === 'fail') ? EXIT.failed : EXIT.ok)
  })
}

async function examineMachine(): Promise<Finding[]> {
  return [checkRuntime(), checkPackages(), await checkPictures(), await checkHashing(), checkFfmpeg()]
}

async function examineService(options: Readonly<Record<string, unknown>>, terminal: Terminal): Promise<Finding[]> {
  const loaded = tryToLoad(options, terminal)
  if (loaded instanceof ConfigError)
    return [fail('configuration', loaded.message, 'correct it first; nothing else can be checked without it')]
  const { config } = loaded
  const baseUrl = terminal.env[OTHER_ENV.baseUrl]
  return [
    ok('configuration', loaded.file ?? 'flags, environment and defaults'),
    ...loaded.warnings.map(({ says, remedy }) => warn('configuration', says, remedy)),
    ...checkAccess(loaded),
    checkDataFolder(config),
    checkSpace(config),
    ...(await checkStore(loaded)),
    ...(await checkBucket(loaded)),
    await checkAddress(config),
    ...checkFrontend(config),
    ...(await checkEngines(config)),
    ...(baseUrl === undefined ? [] : [await checkRemote(baseUrl)]),
  ]
}

function tryToLoad(options: Readonly<Record<string, unknown>>, terminal: Terminal): LoadedConfig | ConfigError {
  try {
    return loadFromCommandLine(options, terminal)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
}

function toTable(findings: readonly Finding[]): string[] {
  const width = Math.max(...findings.map(({ what }) => what.length))
  const rows = findings.flatMap(({ state, what, says, remedy }) => {
    const row = `${state.padEnd(4)}  ${what.padEnd(width)}  ${says}`
    return remedy === null ? [row] : [row, `${' '.repeat(width + 8)}-> ${remedy}`]
  })
  const failures = findings.filter(({ state }) => state === 'fail').length
  const warnings = findings.filter(({ state }) => state === 'warn').length
  return [...rows, '', failures + warnings === 0 ? 'all is well' : `${failures} to fix, ${warnings} to look at`]
}

const ANSWER_WITHIN_MS = 5000

async function checkEngines({ fleet }: Config): Promise<Finding[]> {
  const conditions = await inspectEngines(fleet, { withinMs: ANSWER_WITHIN_MS })
  const embedded = fleet.hasEmbedded ? [ok('engine embedded', 'a part of the service')] : []
  return [...conditions.map(toFinding), ...embedded]
}

function toFinding(condition: EngineCondition): Finding {
  const what = `engine ${condition.id}`
  switch (condition.state) {
    case 'launched':
      return ok(what, `is started with the service: ${condition.command}`)
    case 'absent':
      return fail(what, condition.reason, 'start it, or check its address; jobs that need it wait until it is there')
    case 'ready':
      if (condition.lastError === null) return ok(what, condition.says)
      return warn(what, `${condition.says}; last error: ${condition.lastError}`, 'look at the log of that server')
  }
}

const EDITOR = 'ComfyUI page'
const GET_ONE =
  'pip download --no-deps comfyui-frontend-package, unzip the .whl, and give --comfyui-frontend <folder>/comfyui_frontend_package/static; see docs/comfyui-frontend.md'

function checkFrontend({ frontend }: Config): readonly Finding[] {
  if (frontend === null) return [ok(EDITOR, `not served; to have ComfyUI's own editor here: ${GET_ONE}`)]
  return [checkCopy(frontend), ...checkTemplates(frontend)]
}

function checkCopy({ directory, port }: FrontendConfig): Finding {
  if (statSync(path.join(directory, 'index.html'), { throwIfNoEntry: false })?.isFile() !== true)
    return fail(EDITOR, `${directory} has no index.html`, GET_ONE)
  return ok(EDITOR, `${directory}, on port ${port}`)
}

function checkTemplates({ templateDirectories }: FrontendConfig): readonly Finding[] {
  return templateDirectories
    .filter((folder) => statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    .map((folder) => warn(EDITOR, `${folder} is not there`, 'correct comfyuiTemplates, or leave it out'))
}

function checkRuntime(): Finding {
  // bin.ts refuses anything older before this can run.
  return ok('runtime', `Node ${process.version} on ${process.platform}-${process.arch}`)
}

/** Whether the installed packages are those that package.json asks for. */
function checkPackages(): Finding {
  const { dependencies } = readJson(new URL('../../../package.json', import.meta.url)) as {
    dependencies: Record<string, string>
  }
  const wrong = Object.entries(dependencies).filter(([name, version]) => installedVersion(name) !== version)
  if (wrong.length === 0) return ok('packages', `${Object.keys(dependencies).length} dependencies in place`)
  const names = wrong.map(([name, version]) => `${name}@${version}`).join(', ')
  return fail('packages', `missing or of another version: ${names}`, 'run `npm ci` in the project folder')
}

function readJson(file: string | URL): unknown {
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Finds a package where the package manager put it: beside Atelier when that is installed as a package, below it in a checkout. */
function installedVersion(name: string): string | null {
  try {
    const manifest = findPackageJSON(name, import.meta.url)
    return manifest === undefined ? null : (readJson(manifest) as { version: string }).version
  } catch {
    return null
  }
}

async function checkPictures(): Promise<Finding> {
  try {
    const { default: sharp } = await import('sharp')
    return ok('pictures', `sharp ${sharp.versions.sharp} with libvips ${sharp.versions.vips}`)
  } catch (error) {
    return fail(
      'pictures',
      `sharp does not load: ${toReason(error)}`,
      'run `npm ci` on this machine; node_modules may come from another',
    )
  }
}

async function checkHashing(): Promise<Finding> {
  try {
    const { Blake3Hasher } = await import('@napi-rs/blake-hash')
    return ok('hashing', `native blake3 (${new Blake3Hasher().update('').digest('hex').slice(0, 8)}…)`)
  } catch (error) {
    return warn(
      'hashing',
      `native blake3 does not load, the slower fallback is used: ${toReason(error)}`,
      'run `npm ci` on this machine',
    )
  }
}

const PROGRAM_WITHIN_MS = 10_000

function checkFfmpeg(): Finding {
  const { stdout, status } = spawnSync('ffmpeg', ['-version'], { encoding: 'utf8', timeout: PROGRAM_WITHIN_MS })
  const version = status === 0 ? /^ffmpeg version (\S+)/.exec(stdout)?.[1] : undefined
  if (version !== undefined) return ok('ffmpeg', version)
  return ok('ffmpeg', 'not found; it is optional and only needed for video and audio')
}

const BUCKET = 'bucket'

const REMEDIES: Readonly<Record<NonNullable<BucketFacts['failed']>['step'], string>> = {
  put: 'check the address, the keys (ATELIER_BLOBS_KEYS) and that they may write below the prefix',
  get: 'let the keys read objects below the prefix',
  range: 'use a service that answers requests for ranges',
  presigned: 'check publicEndpoint and the clocks, or start with --content proxy',
  list: 'let the keys list the bucket: without it left-over objects are never found',
  delete: 'let the keys delete objects below the prefix',
}

/** Empty when bytes lie in files. */
async function checkBucket({ config: { blobs, store }, secrets }: LoadedConfig): Promise<readonly Finding[]> {
  if (blobs.kind !== 's3' || store.kind !== 'postgres') return []
  try {
    const { worked, failed, belongs } = await inspectBucket(blobs, { database: store, secrets })
    if (failed !== null) {
      const { step, reason, remedy } = failed
      return [fail(BUCKET, `${blobs.shown}: ${step}: ${reason}`, remedy ?? REMEDIES[step])]
    }
    const says = `${blobs.shown}: ${worked.join(', ')}`
    if (belongs === 'elsewhere') {
      return [fail(BUCKET, `${says}; it holds the bytes of another database`, 'name the bucket of this database')]
    }
    return [
      ok(BUCKET, `${says}; ${belongs === 'here' ? 'its id is that of the database' : 'no service has used it yet'}`),
    ]
  } catch (error) {
    return [fail(BUCKET, `${blobs.shown}: ${toReason(error)}`, 'see docs/scale-out.md')]
  }
}
