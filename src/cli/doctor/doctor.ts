/** `atelier doctor`: checks everything a start depends on, and says what to do about each problem. */
import type { Command } from 'commander'
import type { LoadedConfig } from '../../config/config.ts'
import { ConfigError } from '../../config/config-error.ts'
import { OTHER_ENV } from '../../config/env.ts'
import { addSettingFlags, loadFromCommandLine } from '../setting-flags.ts'
import { EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { type Finding, fail, ok } from './check.ts'
import { checkBucket } from './check-bucket.ts'
import { checkEngines } from './check-engines.ts'
import { checkFrontend } from './check-frontend.ts'
import { checkFfmpeg, checkHashing, checkPackages, checkPictures, checkRuntime } from './check-machine.ts'
import { checkAddress, checkDataFolder, checkRemote, checkSafety, checkSpace, checkStore } from './check-service.ts'

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
    checkSafety(loaded),
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
