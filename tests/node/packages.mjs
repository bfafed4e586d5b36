// Packages are found from where the importing file is: here, beside their lock file.

export const packages = name => import(name)
