/** The https address of a git repository, from what git and people write. */

const SSH = /^(?:ssh:\/\/)?git@([\w.-]+)[:/](?!\d+\/)([\w./~-]+)$/

/** https, without user, password, query and `.git`, so that one repository has one address; null: another kind of address. */
export function toRepository(address: string): string | null {
  const [, host, path] = SSH.exec(address) ?? []
  const url = URL.parse(host === undefined ? address : `https://${host}/${path}`)
  if (url === null || url.protocol !== 'https:') return null
  return `https://${url.host}${url.pathname.replace(/\/+$/, '').replace(/\.git$/, '')}`
}
