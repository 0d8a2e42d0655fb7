/** Where the service stands: what comes before every address of ours. The page carries it, because a proxy may have put a prefix there. */
function readMeta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? ''
}

export const BASE = readMeta('atelier-base')
/** Names the build that this page was made of. */
export const BUILD = readMeta('atelier-build')
