//! Dockerfile → reproducible OCI image.
