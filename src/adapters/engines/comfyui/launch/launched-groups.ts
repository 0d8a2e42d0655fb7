/**
 * Remembers in the data folder which processes were launched, so that the next start ends those that outlived a service which was killed
 * together with their keepers: they would hold a graphics card for ever. A process is known by its number together with the moment of its start
 * and the boot of its machine; a number that another process has by now is left alone. Only Linux tells these things; elsewhere
 * nothing is remembered.
 */
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface ProcessIdentity {
  readonly pid: number
  /** In ticks since the boot. */
  readonly startedAt: string
}

interface LaunchedGroup {
  /** The boot of the machine, and the space in which its process numbers count. */
  readonly machine: string
  /** The service that launched it. */
  readonly owner: ProcessIdentity
  /** Leads the group, which has its number. */
  readonly keeper: ProcessIdentity
  /** null: it has not been started yet. */
  readonly engine: ProcessIdentity | null
}

interface GroupMemory {
  /** The engine in the group runs. */
  started(enginePid: number): void
  /** The group has ended. */
  ended(): void
}

const NOTHING: GroupMemory = { started() {}, ended() {} }

/** To be called as soon as the keeper has its number: only later it starts the engine. */
export function rememberGroup(folder: string, keeperPid: number): GroupMemory {
  const [machine, owner, keeper] = [readMachine(), identify(process.pid), identify(keeperPid)]
  if (machine === null || owner === null || keeper === null) return NOTHING
  const file = join(folder, `${keeperPid}-${keeper.startedAt}.json`)
  const write = (engine: ProcessIdentity | null) =>
    quietly(() => {
      mkdirSync(folder, { recursive: true })
      writeFileSync(file, JSON.stringify({ machine, owner, keeper, engine } satisfies LaunchedGroup))
    })
  write(null)
  return {
    started: (enginePid) => write(identify(enginePid)),
    ended: () => quietly(() => rmSync(file, { force: true })),
  }
}

/** Ends what services that are gone launched and left behind. Returns the numbers of the engines that were ended. */
export function endLeftGroups(folder: string): number[] {
  const machine = readMachine()
  const ended: number[] = []
  for (const name of listFiles(folder)) {
    const group = readGroup(join(folder, name))
    // Its service may live: several processes share a data folder.
    if (group !== null && group.machine === machine && isAlive(group.owner)) continue
    if (group !== null && group.machine === machine && endGroup(group))
      ended.push(group.engine?.pid ?? group.keeper.pid)
    quietly(() => rmSync(join(folder, name), { force: true }))
  }
  return ended
}

/** The number of a group is not given to another one while the group has a process, so one that is known vouches for all. */
function endGroup({ keeper, engine }: LaunchedGroup): boolean {
  const isOurs = isAlive(keeper) || (engine !== null && isAlive(engine) && readStat(engine.pid)?.group === keeper.pid)
  if (isOurs) quietly(() => process.kill(-keeper.pid, 'SIGKILL'))
  return isOurs
}

function isAlive({ pid, startedAt }: ProcessIdentity): boolean {
  return readStat(pid)?.startedAt === startedAt
}

function identify(pid: number): ProcessIdentity | null {
  const stat = readStat(pid)
  return stat === null ? null : { pid, startedAt: stat.startedAt }
}

/** Of /proc/PID/stat: the name may hold anything, so what follows its bracket counts. null: there is none, or it has ended. */
function readStat(pid: number): { readonly group: number; readonly startedAt: string } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const [state, group, startedAt] = [fields[0], fields[2], fields[19]]
    return startedAt === undefined || state === 'Z' ? null : { group: Number(group), startedAt }
  } catch {
    return null
  }
}

function readMachine(): string | null {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return null
  }
}

function listFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function readGroup(file: string): LaunchedGroup | null {
  try {
    const group = JSON.parse(readFileSync(file, 'utf8')) as LaunchedGroup
    return Number.isInteger(group.keeper.pid) && group.keeper.pid > 1 && Number.isInteger(group.owner.pid)
      ? group
      : null
  } catch {
    return null
  }
}

/** A disk that is full keeps no server from being started, nor a process that has just ended a start. */
function quietly(act: () => void): void {
  try {
    act()
  } catch {
    // What is not remembered is not ended.
  }
}
