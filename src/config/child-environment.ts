/** What processes that we start inherit: everything but our own settings, among which are secrets. */
export function readChildEnvironment(environment: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('ATELIER_')))
}
