/** Leave to read one asset for a while, for whoever holds the address: no credential travels to where the bytes lie. */
export interface ContentGrant {
  readonly accountId: string
  readonly assetId: string
  readonly expiresAt: Date
}

/** Host-relative, beginning with `/`, without the mount prefix: the surface puts origin and prefix before it. */
export type SignContentUrl = (grant: ContentGrant) => string
