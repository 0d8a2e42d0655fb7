/** Opens the console as a browser does: from the root of the service to its page, and every file that the page names. */

export interface ReadConsole {
  /** Whether the root leads to the page. */
  readonly page: boolean
  /** What the page names and the service does not have. */
  readonly missing: readonly string[]
}

export async function readConsole(url: string): Promise<ReadConsole> {
  const answer = await fetch(`${url}/`, { headers: { accept: 'text/html' } })
  const text = await answer.text()
  const names = [...text.matchAll(/(?:src|href)="([^"]*\/console\/files\/[^"]+)"/g)].map(([, name]) => name)
  const missing: string[] = []
  for (const name of names) {
    const file = await fetch(new URL(name, url))
    if (!file.ok || (await file.arrayBuffer()).byteLength === 0) missing.push(`${name}: ${file.status}`)
  }
  const isConsole = answer.ok && new URL(answer.url).pathname === '/console'
  return {
    page: isConsole && names.some((name) => name.endsWith('.js')) && names.some((name) => name.endsWith('.css')),
    missing,
  }
}
