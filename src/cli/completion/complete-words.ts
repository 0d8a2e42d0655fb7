/**
 * What can stand where a command line is being typed, by the commands themselves: their names, flags, arguments and choices. What a
 * service knows is asked of `service`.
 */
import type { Command, Option } from 'commander'

export interface Word {
  readonly text: string
  readonly about?: string
}

export interface Completion {
  readonly words: readonly Word[]
  /** Names of files can stand here, too. */
  readonly takesFiles: boolean
}

/** Each gives nothing where the service does not answer. */
export interface ServiceWords {
  endpoints(beginning: string): Promise<readonly Word[]>
  versions(name: string): Promise<readonly Word[]>
  /** The newest of them. */
  jobs(): Promise<readonly Word[]>
  assets(): Promise<readonly Word[]>
  /** The inputs of an endpoint, perhaps with a version: `card@stable`. */
  inputs(reference: string): Promise<readonly InputWord[]>
}

export interface InputWord extends Word {
  readonly choices: readonly Word[]
  readonly isSwitch: boolean
  readonly isFile: boolean
}

/** What was typed before the word that is being typed. */
export interface Typed {
  readonly command: Command
  readonly args: readonly string[]
  /** Values of flags of the command, by the name that commander gives them. */
  readonly values: Readonly<Record<string, string>>
  /** Flags that the command does not know. */
  readonly others: ReadonlySet<string>
  /** A flag whose value is being typed. */
  readonly flag: Option | string | null
}

const NOTHING: Completion = { words: [], takesFiles: false }
const FILES: Completion = { words: [], takesFiles: true }

export function readTyped(program: Command, words: readonly string[]): Typed {
  let command = program
  const args: string[] = []
  const values: Record<string, string> = {}
  const others = new Set<string>()
  let flag: Typed['flag'] = null
  for (const word of words) {
    if (flag !== null && !(typeof flag === 'string' && word.startsWith('--'))) {
      if (typeof flag !== 'string') values[flag.attributeName()] = word
      flag = null
      continue
    }
    flag = null
    const [name, inline = null] = splitFlag(word)
    const option = findOption(command, name)
    if (!word.startsWith('-')) {
      const next = args.length === 0 ? command.commands.find((each) => each.name() === word) : undefined
      if (next === undefined) args.push(word)
      else command = next
    } else if (option === null) {
      others.add(name)
      flag = inline === null && name.startsWith('--') ? name : null
    } else if (takesValue(option)) {
      if (inline === null) flag = option
      else values[option.attributeName()] = inline
    }
  }
  return { command, args, values, others, flag }
}

const splitFlag = (word: string): [string, string?] => {
  const at = word.indexOf('=')
  return at === -1 ? [word] : [word.slice(0, at), word.slice(at + 1)]
}
const findOption = (command: Command, name: string) =>
  command.options.find(({ long, short }) => long === name || short === name) ?? null
const takesValue = ({ required, optional }: Option) => required || optional

export async function complete(typed: Typed, current: string, service: ServiceWords): Promise<Completion> {
  const { command, flag, args } = typed
  const [name, inline = null] = splitFlag(current)
  if (name.startsWith('--') && inline !== null) {
    const found = await valuesOf(typed, findOption(command, name) ?? name, inline, service)
    return {
      ...found,
      words: beginning(
        found.words.map((word) => ({ ...word, text: `${name}=${word.text}` })),
        current,
      ),
    }
  }
  const inputs = typeof flag === 'string' ? await inputsOf(typed, service) : []
  const isSwitch = typeof flag === 'string' && findInput(inputs, flag)?.isSwitch !== false
  if (flag !== null && !(isSwitch && current.startsWith('-'))) {
    const found = await valuesOf(typed, flag, current, service)
    return { ...found, words: beginning(found.words, current) }
  }
  if (current.startsWith('-')) return { ...NOTHING, words: beginning(await flagsOf(typed, service), current) }
  const names = command.commands.filter((each) => !isHidden(each))
  if (names.length > 0 && args.length === 0)
    return {
      ...NOTHING,
      words: beginning(
        names.map((each) => ({ text: each.name(), about: each.description() })),
        current,
      ),
    }
  const found = await argumentsOf(typed, current, service)
  return { ...found, words: beginning(found.words, current) }
}

const beginning = (words: readonly Word[], text: string) => words.filter((word) => word.text.startsWith(text))
// What the help hides is no word for anybody.
const isHidden = (command: Command) => !command.parent?.createHelp().visibleCommands(command.parent).includes(command)

async function flagsOf(typed: Typed, service: ServiceWords): Promise<readonly Word[]> {
  const { command, others } = typed
  // Also those that only the long help has.
  const own = [...command.options.filter(({ hidden }) => !hidden), HELP]
  const known = new Set(own.flatMap(({ long }) => long ?? []))
  const inputs = (await inputsOf(typed, service)).flatMap((input) => {
    const flag = toFlag(input.text)
    const all = input.isSwitch ? [flag, `--no-${flag.slice(2)}`] : [flag]
    const isGiven = all.some((each) => others.has(each) || others.has(each.replaceAll('-', '_')))
    return isGiven ? [] : all.filter((each) => !known.has(each)).map((text) => ({ ...input, text }))
  })
  return [...inputs, ...own.flatMap(({ long, description }) => (long ? [{ text: long, about: description }] : []))]
}

const HELP: Pick<Option, 'long' | 'description'> = { long: '--help', description: 'display help for command' }
const toFlag = (input: string) => `--${input.replaceAll('_', '-')}`
const findInput = (inputs: readonly InputWord[], flag: string) =>
  inputs.find(({ text }) => toFlag(text) === flag.replaceAll('_', '-'))

async function inputsOf({ command, args, values }: Typed, service: ServiceWords): Promise<readonly InputWord[]> {
  const [reference] = args
  if (command.name() !== 'run' || reference === undefined) return []
  return service.inputs(values['version'] === undefined ? reference : `${reference}@${values['version']}`)
}

async function valuesOf(
  typed: Typed,
  flag: Option | string,
  current: string,
  service: ServiceWords,
): Promise<Completion> {
  if (typeof flag === 'string') {
    const input = findInput(await inputsOf(typed, service), flag)
    if (input === undefined) return NOTHING
    return input.isFile ? FILES : { ...NOTHING, words: input.isSwitch ? SWITCH : input.choices }
  }
  if (flag.long === '--input') return namedInputs(await inputsOf(typed, service), current)
  const [name] = typed.args
  if (flag.long === '--version' && name !== undefined) return { ...NOTHING, words: await service.versions(name) }
  const alternatives = flag.argChoices ?? /<([\w-]+(?:\|[\w-]+)+)>/.exec(flag.flags)?.[1]?.split('|') ?? []
  if (alternatives.length > 0) return { ...NOTHING, words: alternatives.map((text) => ({ text })) }
  return isOfFiles(flag.flags) ? FILES : NOTHING
}

const SWITCH: readonly Word[] = [{ text: 'true' }, { text: 'false' }]

function namedInputs(inputs: readonly InputWord[], current: string): Completion {
  const [name, value = null] = splitFlag(current)
  const input = inputs.find(({ text }) => text === name)
  if (value === null || input === undefined)
    return { ...NOTHING, words: inputs.map((each) => ({ ...each, text: `${each.text}=` })) }
  const choices = input.isSwitch ? SWITCH : input.choices
  return { ...NOTHING, words: choices.map((choice) => ({ ...choice, text: `${name}=${choice.text}` })) }
}

async function argumentsOf({ command, args }: Typed, current: string, service: ServiceWords): Promise<Completion> {
  const expected = command.registeredArguments
  const argument = expected[args.length] ?? (expected.at(-1)?.variadic === true ? expected.at(-1) : undefined)
  if (argument === undefined) return NOTHING
  const [name, selector = null] = current.split('@')
  const isRun = command.name() === 'run'
  if (isRun && selector !== null)
    return {
      ...NOTHING,
      words: (await service.versions(name)).map((word) => ({ ...word, text: `${name}@${word.text}` })),
    }
  if (isRun) return { words: await service.endpoints(current), takesFiles: true }
  if (command.parent?.name() === 'endpoints' && argument.name() === 'name')
    return { ...NOTHING, words: await service.endpoints(current) }
  if (command.parent?.name() === 'endpoints' && VERSIONS.has(argument.name()))
    return { ...NOTHING, words: await service.versions(args[0] ?? '') }
  if (argument.name() === 'id' && (command.parent?.name() === 'jobs' || command.name() === 'trace'))
    return { ...NOTHING, words: await service.jobs() }
  if (argument.name() === 'id' && command.parent?.name() === 'assets')
    return { ...NOTHING, words: await service.assets() }
  return isOfFiles(argument.name()) ? FILES : NOTHING
}

const VERSIONS: ReadonlySet<string> = new Set(['version', 'from', 'to', 'alias'])
const isOfFiles = (text: string) => /file|folder|\.json|\.yaml|\.csv/.test(text)
