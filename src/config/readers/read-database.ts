/**
 * Reads the address of a Postgres database, and fills its gaps from the variables of libpq. Its password goes into a secret at
 * once. The messages here never repeat the text, which may hold that password.
 */
import {
  type AddressParameters,
  type PostgresAddress,
  parseAddress,
  readAddress,
} from '../../../lib/postgres/address.ts'
import { type Environment, POSTGRES_ENV } from '../env.ts'
import { Secret } from '../secrets.ts'

export interface GivenDatabase {
  /** What the address says, except its password. */
  readonly parameters: AddressParameters
  readonly password: Secret<string> | null
}

export function readDatabase(text: string): GivenDatabase {
  const parameters = new Map(parseAddress(text))
  const password = parameters.get('password')
  parameters.delete('password')
  return { parameters, password: password === undefined ? null : new Secret(password) }
}

const ABOUT_TLS = ['sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'channel_binding']

/** The whole address; a message names the variables that are part of it. */
export function completeAddress({ parameters }: GivenDatabase, env: Environment, label: string): PostgresAddress {
  const isPlain = (parameters.get('sslmode') ?? env[POSTGRES_ENV.sslmode]) === 'disable'
  const more = Object.entries(POSTGRES_ENV).flatMap(([name, variable]) => {
    const value = env[variable]
    if (value === undefined || value === '' || name === 'password' || parameters.has(name)) return []
    return isPlain && ABOUT_TLS.includes(name) ? [] : [{ name, variable, value }]
  })
  try {
    return readAddress(new Map([...parameters, ...more.map(({ name, value }) => [name, value] as const)]))
  } catch (error) {
    const added = more.length === 0 ? '' : `, with ${more.map(({ variable }) => variable).join(', ')}`
    throw new Error(`database (from ${label}${added}) ${(error as Error).message}`)
  }
}

/** The password that a file in the way of libpq has for this address: lines of host:port:database:user:password. */
export function findInPassFile(text: string, { hosts, database, user }: PostgresAddress): string | null {
  for (const { host, port } of hosts) {
    const wanted = [host, `${port}`, database, user]
    for (const line of text.split(/\r?\n/)) {
      if (line.startsWith('#')) continue
      // A backslash makes a colon or a backslash part of its field.
      const fields = /^((?:\\.|[^:\\])*):((?:\\.|[^:\\])*):((?:\\.|[^:\\])*):((?:\\.|[^:\\])*):(.+)$/s
        .exec(line)
        ?.slice(1)
      const [password, ...keys] = (fields ?? []).map((field) => field.replaceAll(/\\(.)/gs, '$1')).reverse()
      if (password !== undefined && keys.reverse().every((key, index) => key === '*' || key === wanted[index]))
        return password
    }
  }
  return null
}
