/** Settings that are allowed but look like a mistake. */
import { quote } from './config-error.ts'
import { type Environment, findUnknownNames } from './env.ts'
import { isLoopback } from './readers/read-network.ts'
import type { SettingValues } from './settings/settings.ts'

/** One line each. */
export function toWarnings(values: SettingValues, env: Environment): string[] {
  const warnings = findUnknownNames(env).map(
    (name) => `the environment variable ${name} is not a setting and has no effect`,
  )
  if (values.kind === 'local' && !isLoopback(values.host) && values.token === null) {
    warnings.push(
      `listening on ${quote(values.host)} without a token: anyone who can reach the port can use the service`,
    )
  }
  if (values.synchronous === 'normal')
    warnings.push('synchronous = normal: acknowledged jobs may be lost in a power cut')
  if (values.kind !== 'local' && values.adminToken === null && values.role !== 'worker') {
    warnings.push(
      'there is no adminToken, and so no admin API: accounts and keys can only be changed while the service is down',
    )
  }
  return warnings
}
