/** Reads a Dockerfile into its stages: as much of the language as ours uses, and an error for everything else. */

export interface Instruction {
  readonly word: string
  /** `--from=packages` becomes `from: 'packages'`. */
  readonly flags: Readonly<Record<string, string>>
  readonly text: string
}

export interface Stage {
  readonly name: string
  readonly base: string
  readonly instructions: readonly Instruction[]
}

interface Dockerfile {
  /** Arguments before the first stage, with their defaults. */
  readonly args: Readonly<Record<string, string>>
  readonly stages: readonly Stage[]
}

const WORDS = new Set(
  'ARG FROM WORKDIR COPY RUN LABEL ENV USER VOLUME EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD'.split(' '),
)

export function readDockerfile(text: string): Dockerfile {
  const args: Record<string, string> = {}
  const stages: { name: string; base: string; instructions: Instruction[] }[] = []
  for (const instruction of readInstructions(text)) {
    const current = stages.at(-1)
    if (instruction.word === 'FROM') {
      const [base, , name = 'image'] = instruction.text.split(/\s+/)
      stages.push({ name, base: fill(base, args), instructions: [] })
    } else if (current !== undefined) current.instructions.push(instruction)
    else Object.assign(args, readPairs(instruction.text))
  }
  return { args, stages }
}

function readInstructions(text: string): Instruction[] {
  const lines = text.split('\n').filter((line) => !/^\s*(#|$)/.test(line))
  const joined = lines.join('\n').replaceAll(/\\\n\s*/g, '')
  return joined.split('\n').map((line) => {
    const [, word, rest] = /^(\S+)\s+(.*)$/.exec(line) ?? []
    if (word === undefined || !WORDS.has(word)) throw new Error(`not understood: ${line}`)
    const flags: Record<string, string> = {}
    const body = rest.replace(/^(?:--[a-z-]+=\S+\s+)+/, (spelled) => {
      for (const [, name, value] of spelled.matchAll(/--([a-z-]+)=(\S+)/g)) flags[name] = value
      return ''
    })
    return { word, flags, text: body }
  })
}

/** `A=1 B="two words"`, as ENV, LABEL and ARG have it. A name without a value is left out. */
export function readPairs(text: string): Record<string, string> {
  const pairs = text.matchAll(/([\w.]+)=(?:"([^"]*)"|(\S*))/g)
  return Object.fromEntries([...pairs].map(([, name, quoted, plain]) => [name, quoted ?? plain]))
}

function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => values[name] ?? '')
}

/** `["a", "b"]`: the only form in which commands of the image are allowed, since there is no shell in it. */
export function readCommand(text: string): string[] {
  const found: unknown = JSON.parse(text)
  if (!Array.isArray(found) || !found.every((item) => typeof item === 'string')) throw new Error(`no list: ${text}`)
  return found
}
